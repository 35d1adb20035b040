import { expect, test } from "vitest";
import { runKillRounds } from "./kill-rounds.ts";

// More of the same: `node tests/ledger/kill.ts 50`.
test("what was answered before a kill is there afterwards, and nothing stays held", async () => {
  const report = await runKillRounds(4, 20_261_121);
  expect(report.problems).toEqual([]);
  expect(report.kills).toBe(4);
  expect(report.admitted).toBeGreaterThan(20);
  expect(report.settled).toBeGreaterThan(20);
  expect(report.leftOpen).toBeGreaterThanOrEqual(report.kills);
});
