import { expect, it } from "vitest";
import { runServiceKills } from "./kill-service.ts";

// The long version is tests/slow/kills.test.ts.
it("keeps what three kills of the whole service could have taken", async () => {
  const report = await runServiceKills(3, 7);
  expect(report.problems).toEqual([]);
  expect(report).toMatchObject({ kills: 3, doctor: 0 });
  expect(report.admitted).toBeGreaterThan(3);
});
