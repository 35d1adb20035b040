import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { findCycles, readSources } from "./import-cycles.ts";
import { findSharedNames } from "./shared-names.ts";

const root = join(import.meta.dirname, "../..");

describe("no files import each other in a circle, types included", () => {
  it.each(["src", "engine/src", "tests", "bench"])("%s", (folder) => {
    const sources = readSources(join(root, folder));
    expect(sources.size).toBeGreaterThan(10);
    expect(findCycles(sources)).toEqual([]);
  });
});

test("finds every file of a circle, and only those", () => {
  const cycles = findCycles(
    new Map([
      ["a.ts", 'import { b } from "./parts/b.ts";'],
      ["parts/b.ts", 'export type { C } from "./c.ts";'],
      ["parts/c.ts", 'type A = import("../a.ts").A;'],
      ["enters.ts", 'import "./a.ts";'],
      ["left.ts", 'import type { Left } from "node:path";'],
      ["alone.ts", 'import { self } from "./alone.ts";'],
    ]),
  );
  expect(cycles).toEqual([["a.ts", "parts/b.ts", "parts/c.ts"], ["alone.ts"]]);
});

test("no two files of the service have one name, except the halves of one thing", () => {
  const files = [...readSources(join(root, "src")).keys()];
  expect(findSharedNames(files)).toEqual([]);
});

test.each([
  [["ledger/sqlite/admit.ts", "ledger/postgres/admit.ts"], 0],
  [["ledger/sqlite/admit.ts", "ledger/admit.ts"], 1],
  [["cli/receipt.ts", "ledger/receipt.ts"], 0],
  [["cli/receipt.ts", "ledger/receipt.ts", "http/receipt.ts"], 1],
  [["formats/messages/wire.ts", "formats/responses/wire.ts", "sse/wire.ts"], 1],
])("%j are %i group of one name", (files, count) => {
  expect(findSharedNames(files)).toHaveLength(count);
});
