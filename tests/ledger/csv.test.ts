import { expect, it } from "vitest";
import { csvLine } from "../../src/ledger/csv.ts";

it.each([
  ["a", "a"],
  ["a,b", '"a,b"'],
  ["a b", '"a b"'],
  ['say "a"', '"say ""a"""'],
  ["a\nb", '"a\nb"'],
  [" a", '" a"'],
  ["=1+1", "'=1+1"],
  ["+a", "'+a"],
  ["-a", "'-a"],
  ["@sum(a1)", "'@sum(a1)"],
  ["\t=1", '"\'\t=1"'],
  ["＝1", "'＝1"],
  ["-1.5", "-1.5"],
  ["-", "'-"],
])("a cell of %j is %j", (cell, written) => {
  expect(csvLine([cell, null, 7])).toBe(`${written},,7\r\n`);
});
