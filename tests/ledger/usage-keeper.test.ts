import { expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { openUsageKeeper } from "../../src/ledger/usage-keeper.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { untilStill } from "../doubles/until-still.ts";

type Ledger = Parameters<typeof openUsageKeeper>[0];

function scripted(ledger: Partial<Ledger>): {
  readonly calls: string[];
  readonly faults: unknown[];
  readonly timers: ReturnType<typeof openManualTimers>;
  readonly keeper: AsyncDisposable;
} {
  const calls: string[] = [];
  const faults: unknown[] = [];
  const timers = openManualTimers();
  const keeper = openUsageKeeper(
    {
      findUnsummed(after) {
        calls.push(`find after ${after}`);
        return ledger.findUnsummed?.(after) ?? Promise.resolve({ accountIds: [], last: null });
      },
      keepUsage(accountIds) {
        calls.push(`keep ${accountIds.join(" ")}`);
        return ledger.keepUsage?.(accountIds) ?? Promise.resolve({ mine: true, done: accountIds });
      },
    },
    { timers, telemetry: { ledgerRetry: ({ cause }) => void faults.push(cause) } },
  );
  return { calls, faults, timers, keeper };
}

it("adds up what every account has, a step at a time, with rests between, and again a minute later", async () => {
  let left = 3;
  const { calls, keeper, timers } = scripted({
    findUnsummed: (after) =>
      Promise.resolve(
        after === "" ? { accountIds: ["a", "b"], last: "b" } : { accountIds: ["c"], last: null },
      ),
    keepUsage: (accountIds) =>
      Promise.resolve({ mine: true, done: (left -= 1) > 0 ? [] : [...accountIds] }),
  });
  await untilStill(() => calls.length);
  expect(calls).toEqual([]);
  timers.advance(limits.usageKeepMs);
  for (let step = 0; step < 4; step += 1) {
    await untilStill(() => calls.length);
    timers.advance(limits.usageRestMs);
  }
  await untilStill(() => calls.length);
  const round = ["find after ", "keep a b", "keep a b", "keep a b", "find after b", "keep c"];
  expect(calls).toEqual(round);
  expect(timers.delays).toEqual([limits.usageKeepMs]);
  timers.advance(limits.usageKeepMs);
  await untilStill(() => calls.length);
  expect(calls.slice(round.length)).toEqual(["find after ", "keep a b"]);
  await keeper[Symbol.asyncDispose]();
  expect(timers.waiting).toBe(0);
});

it("leaves it to the process that does it, and tries again after a fault", async () => {
  const fault = new Error("away");
  const { calls, faults, keeper, timers } = scripted({
    findUnsummed: () => Promise.resolve({ accountIds: ["a"], last: "a" }),
    keepUsage: () =>
      calls.length > 3 ? Promise.reject(fault) : Promise.resolve({ mine: false, done: [] }),
  });
  for (let minute = 0; minute < 3; minute += 1) {
    timers.advance(limits.usageKeepMs);
    await untilStill(() => calls.length);
  }
  expect(calls).toEqual([
    "find after ",
    "keep a",
    "find after ",
    "keep a",
    "find after ",
    "keep a",
  ]);
  expect(faults).toEqual([fault, fault]);
  await keeper[Symbol.asyncDispose]();
});
