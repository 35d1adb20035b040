import { expect, it } from "vitest";
import { runServiceKills } from "../service/kill-service.ts";

it("keeps what 50 kills of the whole service under 20 streams could have taken", async () => {
  const report = await runServiceKills(50, 20_251_121);
  console.log(JSON.stringify(report));
  expect(report.problems).toEqual([]);
  expect(report).toMatchObject({ kills: 50, doctor: 0 });
  // It was worth killing: clients had seen much, and much was still open.
  expect(report.admitted).toBeGreaterThan(500);
  expect(report.settled - report.late).toBeGreaterThan(200);
  expect(report.leftOpen).toBeGreaterThan(200);
});
