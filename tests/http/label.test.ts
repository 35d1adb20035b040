import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { labelOf, labelOfBody, labelOfHeader } from "../../src/http/label.ts";

function hashed(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

it.each([
  ["a name", "ada@example.org", "ada@example.org"],
  ["spaces around it", "  ada \t", "ada"],
  ["letters of any script", "Zoë 李 🙂", "Zoë 李 🙂"],
  ["128 characters of two units each", "🙂".repeat(128), "🙂".repeat(128)],
  ["129 characters", "a".repeat(129), hashed("a".repeat(129))],
  ["129 characters of two units each", "🙂".repeat(129), hashed("🙂".repeat(129))],
  ["a line break", "a\nb", hashed("a\nb")],
  ["a separator of lines", "a\u2028b", hashed("a\u2028b")],
  ["a turn of the direction of writing", "a\u202eb", hashed("a\u202eb")],
  ["a terminal's command", "\u001b[2J", hashed("\u001b[2J")],
  ["half of a character", "a\ud800", hashed("a\ud800")],
  ["nothing", "", null],
  ["spaces alone", " \t ", null],
])("keeps a label with %s", (_, text, kept) => {
  expect(labelOf(text)).toBe(kept);
});

it("reads a header as UTF-8 where it is, else as Latin-1", () => {
  const sent = (bytes: Buffer): string => bytes.toString("latin1");
  expect(labelOfHeader(sent(Buffer.from("Zoë", "utf8")))).toBe("Zoë");
  expect(labelOfHeader(sent(Buffer.from("Zoë", "latin1")))).toBe("Zoë");
  expect(labelOfHeader(undefined)).toBeNull();
});

it("takes the first field that has a label, in the order of the setting", () => {
  const body = { user: "u", safety_identifier: "s", metadata: { user_id: "m" } };
  expect(labelOfBody(body, [])).toBeNull();
  expect(labelOfBody(body, ["metadata.user_id", "user"])).toBe("m");
  expect(labelOfBody(body, ["safety_identifier", "user"])).toBe("s");
  expect(labelOfBody({ ...body, user: " " }, ["user", "metadata.user_id"])).toBe("m");
  for (const metadata of [null, "m", [], { user_id: 7 }, { user_id: null }])
    expect(labelOfBody({ metadata, user: 1 }, ["metadata.user_id", "user"])).toBeNull();
});
