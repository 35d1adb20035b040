import { expect, test } from "vitest";
import {
  canonicalText,
  chainHash,
  firstHead,
  formatHead,
  type JournalEntry,
  parseHead,
} from "../../src/ledger/journal.ts";

// Made with another program from the text in docs/ledger.md. They never change: ledgers and receipts rest on them.
const vectors: readonly { readonly entry: Partial<JournalEntry>; readonly hash: string }[] = [
  {
    entry: { kind: "credit", balanceDeltaNanos: 10_000_000_000n, note: "starting credit" },
    hash: "d7944f4ad43506244645edf0fc4e0b7a56684b1a2b497e0df8abf0b9e980db4d",
  },
  {
    entry: { kind: "reserve", heldDeltaNanos: 1_400_000n, actor: "key_ann1", requestId: "req_1" },
    hash: "ef691955e0bc61e7b020755bec2e5c4659e46fab79a916cbb2cefa5fd4a36d89",
  },
  {
    entry: {
      kind: "settle",
      balanceDeltaNanos: -450_000n,
      heldDeltaNanos: -1_400_000n,
      actor: "key_ann1",
      requestId: "req_1",
    },
    hash: "3f49464a8b5af94492efd38b60dbaaab634d6b98ed270a940527d2c8ecdd6613",
  },
  {
    entry: { kind: "takeback", balanceDeltaNanos: -1n, note: "zwei\nZeilen – ü 💧" },
    hash: "a75fa92264d9034f1cb04fa7739e8ac0cb3265af0190ac6d4367c020dd19a0da",
  },
  {
    entry: { kind: "credit", balanceDeltaNanos: 1n, note: "" },
    hash: "807425371ad904f0008c0f3afeaaf9a99d02d5ad2508aca28684d15d731e300a",
  },
  {
    entry: {
      kind: "top_up",
      balanceDeltaNanos: 25_000_000_000n,
      actor: "oper_mia",
      reference: "pi_3PqXÜ 1",
      note: "paid\nby card",
    },
    hash: "2e2acfd999a1ffd4da1513a9d1131f324c95515f43f8a86d74a83da61d957268",
  },
  {
    entry: { kind: "refund", balanceDeltaNanos: 450_000n, actor: "user:mia", receipt: "req_1" },
    hash: "b30360d61cec614779e835a40f62efef792861f799a44df0ebe03cb66327f229",
  },
  {
    entry: {
      kind: "grant",
      balanceDeltaNanos: 5n,
      actor: "service",
      reference: "grant:2026-11-01T00:00:00.000Z",
      note: "",
    },
    hash: "1e32cbec88ea5f7bd88afd1117d197c5a530e0bbdc5c1d4619f31e6898e74cae",
  },
  {
    entry: { kind: "correction", balanceDeltaNanos: -7n, actor: "oper_mia" },
    hash: "4669682ea897dd4431ad14ef4c630de0bbd03961ad399197f5a588e24c8d418d",
  },
];

function entryOf(index: number, fields: Partial<JournalEntry>): JournalEntry {
  return {
    accountId: "acct_ann",
    sequence: index + 1,
    atMs: 1_700_000_000_000 + index,
    kind: "credit",
    balanceDeltaNanos: 0n,
    heldDeltaNanos: 0n,
    actor: "operator",
    requestId: null,
    reference: null,
    receipt: null,
    note: null,
    ...fields,
  };
}

test("hashes are those that another program makes of the documented bytes", () => {
  let previous = firstHead;
  const hashes = vectors.map(({ entry }, index) => {
    previous = chainHash(previous, entryOf(index, entry));
    return Buffer.from(previous).toString("hex");
  });
  expect(hashes).toEqual(vectors.map(({ hash }) => hash));
});

test("canonical bytes are the documented ten lines", () => {
  const entry = entryOf(1, {
    kind: "settle",
    balanceDeltaNanos: -3n,
    heldDeltaNanos: -5n,
    actor: "key_x",
    requestId: "req_9",
    note: "why",
  });
  expect(canonicalText(entry).split("\n")).toEqual([
    "tributary-entry-1",
    "acct_ann",
    "2",
    "1700000000001",
    "settle",
    "-3",
    "-5",
    "key_x",
    "req_9",
    "=why",
  ]);
  expect(canonicalText({ ...entry, note: null, requestId: null })).toMatch(/\nkey_x\n\n$/);
});

test("a long note is hashed whole", () => {
  const long = "ü".repeat(9_000);
  const one = chainHash(firstHead, entryOf(0, { note: `${long}a` }));
  const other = chainHash(firstHead, entryOf(0, { note: `${long}b` }));
  expect(Buffer.from(one).equals(other)).toBe(false);
});

test("a head reads back as it was shown, and nothing else is one", () => {
  const text = `acct_ann:3:${vectors[2]?.hash ?? ""}`;
  const head = parseHead(text);
  expect(head).toMatchObject({ accountId: "acct_ann", sequence: 3 });
  expect(head === null ? null : formatHead(head)).toBe(text);
  for (const wrong of ["", "acct_ann", text.slice(0, -1), `${text}0`, text.replace("acct_", "")])
    expect(parseHead(wrong)).toBeNull();
});
