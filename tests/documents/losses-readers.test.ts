import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { testReasoning } from "../cases/context.ts";
import { caseFiles, isRecord, readJson, type JsonRecord } from "../cases/files.ts";
import { examplesOf } from "./losses/examples.ts";
import { formatLosses } from "./losses/formats.ts";
import { changeAt, isPlace, leadsTo, stepsOf, valuesAt } from "./losses/places.ts";
import { watchReads } from "./losses/reads.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];

const seal = { text: "So", encryptedContent: "sealed:So", signature: "signed:So" };

function plain(format: WireFormatName): JsonRecord {
  return format === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
}

/** Every request of the cases, and of the examples of the table. */
function bodiesOf(format: WireFormatName): readonly JsonRecord[] {
  const cases = caseFiles("requests")
    .filter((file) => file.format === format)
    .map((file) => (file.kind === "refused" ? readJson(file)["request"] : readJson(file)));
  const examples = Object.values(examplesOf(format, seal)).flat();
  return [...cases, ...examples.map(({ send }) => ({ ...plain(format), ...send }))].filter(
    isRecord,
  );
}

/** Every place that the reader of a format asked for in any of its requests. */
function placesRead(format: WireFormatName): readonly string[] {
  const all = new Set<string>();
  for (const body of bodiesOf(format)) {
    const watched = watchReads(body);
    try {
      wireFormats[format].parseRequest(watched.body, testReasoning);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
    }
    for (const place of watched.read) all.add(place);
  }
  return [...all];
}

/** A list of tools inside of something is read as `tools` is. */
function asTools(place: string): string {
  return place.replace(/^(?:input\[additional_tools\]\.|tools\[namespace\]\.)+(?=tools\[)/u, "");
}

/** Roles and types stand in the brackets of a table's places. */
function isLabel(place: string): boolean {
  return ["role", "type"].includes(stepsOf(place).at(-1) ?? "");
}

describe.each(formats)("the reader of %s", (format) => {
  const rows = Object.values(formatLosses[format]);
  const told = rows.flatMap(({ fields }) => fields);
  const read = placesRead(format).map(asTools);

  it("asks for no field that docs/losses.md does not tell", () => {
    expect(read.length).toBeGreaterThan(30);
    const unknown = read.filter(
      (place) => !isLabel(place) && !told.some((one) => leadsTo(place, one)),
    );
    expect(unknown).toEqual([]);
  });

  it("asks for every field that it is said to read", () => {
    // What the answer repeats may have been copied unread.
    const wanted = rows
      .filter(({ fate }) => fate !== "ignored" && fate !== "served")
      .flatMap(({ fields }) => fields.filter((field) => !field.endsWith("]")));
    expect(wanted.filter((field) => !read.some((place) => isPlace(place, field)))).toEqual([]);
  });

  it("asks for no field that is ignored whatever it holds", () => {
    const ignored = rows
      .filter(({ fate, when }) => fate === "ignored" && when === null)
      .flatMap(({ fields }) => fields.filter((field) => !field.endsWith("]")));
    expect(ignored.filter((field) => read.some((place) => isPlace(place, field)))).toEqual([]);
  });

  it("refuses a wrong type where a field is carried or converted and its row says nothing else", () => {
    const accepted: string[] = [];
    for (const [topic, { fate, fields }] of Object.entries(formatLosses[format])) {
      if (fate !== "carried" && fate !== "converted") continue;
      for (const field of fields) {
        const found = (examplesOf(format, seal)[topic] ?? []).find(
          ({ send }) => valuesAt(send, field).length > 0,
        );
        const body = changeAt({ ...plain(format), ...found?.send }, field, () => [true]);
        if (!isRecord(body) || found === undefined) throw new Error(`no example has ${field}`);
        if (isAccepted(format, body)) accepted.push(field);
      }
    }
    expect(accepted.filter((field) => !saysMore.has(field))).toEqual([]);
  });
});

/** What was sealed elsewhere is dropped, a search tells what it found as it likes, a call's input is any JSON, `strict` promises nothing. */
const saysMore: ReadonlySet<string> = new Set([
  "input[reasoning].encrypted_content",
  "tools[function].function.strict",
  "tools[function].strict",
  "tools[].strict",
  "messages[assistant].content[tool_use].input",
  "messages[user].content[tool_result].content[search_result].title",
  "messages[user].content[tool_result].content[search_result].source",
]);

function isAccepted(format: WireFormatName, body: JsonRecord): boolean {
  try {
    wireFormats[format].parseRequest(body, testReasoning);
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}
