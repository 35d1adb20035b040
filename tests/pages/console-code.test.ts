import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, bigInt, property, string } from "fast-check";
import { expect, test } from "vitest";
import { canonicalText, checkChain, firstHash } from "../../console/src/chain.ts";
import { textOf, unitsOf } from "../../console/src/exact.ts";
import { linkTo, placeOf } from "../../console/src/place.ts";
import { bucketsOf } from "../../console/src/time-ranges.ts";
import { agoText, countText, creditText, durationText } from "../../console/src/words.ts";
import { formatCredit } from "../../src/admission/price.ts";
import {
  canonicalText as textOfLedger,
  chainHashHex,
  type JournalEntry,
} from "../../src/ledger/journal.ts";
import { entryToJson } from "../../src/ledger/administration/entry-row.ts";

// What the console computes by itself, against what the service computes.

const root = join(import.meta.dirname, "../../console");

const kinds = ["credit", "refund", "reserve", "top_up"] as const;

function chainOf(notes: readonly (string | null)[]) {
  let previous = firstHash;
  return notes.map((note, index) => {
    const entry: JournalEntry = {
      accountId: "acct_a",
      sequence: index + 1,
      atMs: 1_700_000_000_000 + index,
      kind: kinds[index % kinds.length] ?? "credit",
      balanceDeltaNanos: index % 2 === 0 ? 12_345_678_901n : -1n,
      heldDeltaNanos: BigInt(index),
      actor: "oper_x",
      requestId: index % 2 === 0 ? null : "req_x",
      reference: index % 3 === 1 ? "payment-4711" : null,
      receipt: index % 3 === 1 ? "req_y" : null,
      note,
    };
    previous = chainHashHex(previous, entry);
    const hash = previous;
    return { entry, json: entryToJson({ ...entry, balanceNanos: 0n, heldNanos: 0n, hash }) };
  });
}

test("the text of an entry is the ledger's, made anew from what the API answers", () => {
  for (const { entry, json } of chainOf([null, "", "two\nlines", "<img src=x>"]))
    expect(canonicalText("acct_a", json)).toBe(textOfLedger(entry));
});

test("a chain is right, and breaks where an entry was changed, left out or exchanged", async () => {
  const entries = chainOf(["a", null, "c", null]).map(({ json }) => json);
  const check = (list: typeof entries, account = "acct_a") => checkChain(account, firstHash, list);
  expect(await check(entries)).toEqual({ state: "right", checked: 4 });
  const changed = entries.map((entry) =>
    entry.sequence === 3 ? { ...entry, amount: "12.4" } : entry,
  );
  expect(await check(changed)).toMatchObject({ state: "broken", sequence: 3 });
  const without = entries.filter(({ sequence }) => sequence !== 2);
  expect(await check(without)).toMatchObject({ state: "broken", sequence: 2 });
  expect(await check(entries, "acct_b")).toMatchObject({ state: "broken", sequence: 1 });
});

test("exact amounts come back as they were", () => {
  assert(
    property(bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (nanos) => {
      const text = formatCredit(nanos);
      expect(unitsOf(text, 9)).toBe(nanos);
      expect(textOf(nanos, 9)).toBe(text);
    }),
  );
});

test("a link names a place, whatever is in its parts", () => {
  const text = string({ minLength: 1, unit: "grapheme" });
  assert(
    property(text, text, (id, value) => {
      const place = placeOf(linkTo(["accounts", id], { key: value, none: null }));
      expect(place.path).toEqual(["accounts", id]);
      expect([...place.query]).toEqual([["key", value]]);
    }),
  );
  expect(placeOf("#/accounts/%zz").path).toEqual(["accounts", "%zz"]);
  expect(placeOf("").path).toEqual([]);
});

test("numbers and times are shown exact and short", () => {
  expect(creditText("1234567.000000001")).toBe("1,234,567.000000001");
  expect(creditText("-2.5")).toBe("−2.5");
  expect(creditText("999")).toBe("999");
  expect(countText(1_234_567)).toBe("1,234,567");
  expect(durationText(999)).toBe("999 ms");
  expect(durationText(1_500)).toBe("1.50 s");
  expect(durationText(61_000)).toBe("1 min 1 s");
  expect(agoText("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:30:00Z"))).toBe("2 hours ago");
  expect(agoText("2026-01-02T00:00:00Z", Date.parse("2026-01-01T00:00:00Z"))).toBe("in 1 day");
});

test("the points of a range end with the present one", () => {
  const nowMs = Date.parse("2026-03-04T05:06:07Z");
  const hours = bucketsOf("24h", nowMs);
  expect(hours).toHaveLength(24);
  expect(hours.at(-1)).toBe(Date.parse("2026-03-04T05:00:00Z"));
  expect(bucketsOf("30d", nowMs).at(-1)).toBe(Date.parse("2026-03-04T00:00:00Z"));
});

// The policy's trusted types refuse these in browsers that know them; all others are kept from them here.
const raw = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc/iu;

test("no text is ever made into elements, and no other host is named", () => {
  const names = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
  const sources = names.filter((name) => /\.(?:tsx?|css)$/u.test(name));
  expect(sources.length).toBeGreaterThan(20);
  for (const name of sources) {
    const source = readFileSync(join(root, "src", name), "utf8");
    expect(source, name).not.toMatch(raw);
    expect(source, name).not.toMatch(/https?:\/\/(?!127\.0\.0\.1)/iu);
  }
});
