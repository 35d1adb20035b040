import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Failure } from "../../src/failure.ts";
import type { SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { type EventStage, openPostgresStages, openSqliteStage } from "./event-stage.ts";
import { postgresTests } from "./postgres-server.ts";
import { defaultSettings, failureOf, openTill, refusal, run, type Till } from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

function open(requestsPerMinute: number): SqliteStore {
  return openNewStore({ ...defaultSettings, requestsPerMinute });
}

/** Sends requests at these moments; returns which were let through. */
function send(till: Till, momentsMs: readonly number[]): readonly boolean[] {
  return momentsMs.map((nowMs) => refusal(() => till.authorize(nowMs)) === "done");
}

function mostInAnyMinute(momentsMs: readonly number[]): number {
  return Math.max(
    0,
    ...momentsMs.map((end) => momentsMs.filter((at) => at > end - 60_000 && at <= end).length),
  );
}

const gaps = fc.array(
  fc.oneof(
    fc.constantFrom(0, 0, 0, 1, 59_999, 60_000, 60_001, 20_000, 30_000),
    fc.integer({ min: 0, max: 25_000 }),
  ),
  { minLength: 1, maxLength: 120 },
);

describe("the rate of a key", () => {
  test("is never more than the limit in any 60 seconds, and nothing is refused below it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), gaps, (limit, waits) => {
        using store = open(limit);
        const till = openTill(store, "a", 0n);
        let nowMs = 1_000_000;
        const moments = waits.map((wait) => (nowMs += wait));
        const passed = send(till, moments);
        const taken: number[] = [];
        passed.forEach((through, at) => {
          const moment = moments[at] ?? 0;
          const inWindow = taken.filter((one) => one > moment - 60_000 && one <= moment).length;
          expect(through).toBe(inWindow < limit);
          if (through) taken.push(moment);
        });
        expect(mostInAnyMinute(taken)).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 150 },
    );
  });

  test("the 601st in 60 s is refused wherever the minute begins, and fits when the oldest has left", () => {
    using store = open(600);
    const till = openTill(store, "a", 0n);
    const moments = Array.from({ length: 600 }, (_, n) => 45_000 + n * 50);
    expect(send(till, moments).every(Boolean)).toBe(true);
    // 600 fixed-minute buckets would let another 600 through here.
    const full = failureOf(() => till.authorize(75_000));
    expect([full.code, full.facts.retryAfterSeconds]).toEqual(["rate_limited", 30]);
    expect(full.facts.rate).toEqual({ limit: 600, remaining: 0, resetMs: 59_950 });
    expect(refusal(() => till.authorize(104_999))).toBe("rate_limited");
    expect(refusal(() => till.authorize(105_000))).toBe("done");
    expect(refusal(() => till.authorize(105_000))).toBe("rate_limited");
    expect(refusal(() => till.authorize(105_050))).toBe("done");
  });

  test("waiting as long as the advice says is enough", () => {
    fc.assert(
      fc.property(gaps, (waits) => {
        using store = open(2);
        const till = openTill(store, "a", 0n);
        let nowMs = 0;
        for (const wait of waits) {
          nowMs += wait;
          if (refusal(() => till.authorize(nowMs)) === "done") continue;
          const seconds = failureOf(() => till.authorize(nowMs)).facts.retryAfterSeconds ?? 0;
          expect(seconds).toBeGreaterThanOrEqual(1);
          expect(seconds).toBeLessThanOrEqual(60);
          nowMs += seconds * 1_000;
          expect(refusal(() => till.authorize(nowMs))).toBe("done");
        }
      }),
      { numRuns: 50 },
    );
  });

  test("tells what is left and when the window is empty", () => {
    using store = open(3);
    const till = openTill(store, "a", 0n);
    expect(till.authorize(0).rate).toEqual({ limit: 3, remaining: 2, resetMs: 60_000 });
    expect(till.authorize(10_000).rate).toEqual({ limit: 3, remaining: 1, resetMs: 60_000 });
    expect(till.authorize(20_000, false).rate).toEqual({ limit: 3, remaining: 1, resetMs: 50_000 });
    expect(till.authorize(70_000, false).rate).toEqual({ limit: 3, remaining: 3, resetMs: 0 });
  });

  test("a look that does not count is never refused for the rate", () => {
    using store = open(1);
    const till = openTill(store, "a", 0n);
    expect(till.authorize(0).ticket).not.toBeNull();
    expect(till.authorize(0, false)).toMatchObject({ ticket: null, rate: { remaining: 0 } });
  });

  test("refused keys take no ticket", () => {
    using store = open(1);
    const till = openTill(store, "a", 0n);
    run(store, "setAccountStatus", { id: till.accountId, status: "disabled" });
    expect(refusal(() => till.authorize(0))).toBe("account_disabled");
    run(store, "setAccountStatus", { id: till.accountId, status: "active" });
    expect(refusal(() => till.authorize(0))).toBe("done");
    expect(refusal(() => till.authorize(0))).toBe("rate_limited");
  });

  test("two keys of one account have a window each", () => {
    using store = open(1);
    const till = openTill(store, "a", 0n);
    const other = openTill(store, "b", 0n);
    till.authorize(0);
    expect(refusal(() => other.authorize(0))).toBe("done");
  });

  test("a clock that was set back by more than a minute blocks nobody", () => {
    using store = open(1);
    const till = openTill(store, "a", 0n);
    till.authorize(10_000_000);
    expect(refusal(() => till.authorize(9_000_000))).toBe("done");
  });
});

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
])("$name", ({ name, runs }) => {
  describe.runIf(runs)("tickets", () => {
    let stages: Awaited<ReturnType<typeof openPostgresStages>> | null = null;
    const open = (): Promise<EventStage> => stages?.open() ?? openSqliteStage();
    beforeAll(async () => {
      if (name === "PostgreSQL") stages = await openPostgresStages();
    });
    afterAll(() => stages?.[Symbol.asyncDispose]());

    test("of a clock that was set back are forgotten with ended leases, and do not count when it comes there again", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const first = await ledger.ensureFirstAccount(1_000_000_000n);
      const remaining = async (takes = true): Promise<number | undefined> =>
        (await ledger.authorize(first?.secret ?? "", takes)).rate.remaining;
      expect(await remaining()).toBe(599);
      stage.later(50_000);
      expect(await remaining()).toBe(598);
      // The first ticket is a minute ahead and counts, the second is further and does not.
      stage.later(-110_000);
      expect(await remaining(false)).toBe(599);
      await ledger.expire();
      stage.later(105_000);
      expect(await remaining()).toBe(598);
      stage.later(-200_000);
      await ledger.expire();
      stage.later(195_000);
      expect(await remaining()).toBe(599);
    });

    test("count from a window ahead to just before a window ago, for what takes one and what looks", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const first = await ledger.ensureFirstAccount(1_000_000_000n);
      await ledger.changeAccount(first?.account.id ?? "", { limits: { requestsPerMinute: 1 } });
      const outcome = (takes: boolean): Promise<unknown> =>
        ledger.authorize(first?.secret ?? "", takes).then(
          ({ rate }) => rate.remaining,
          (error: unknown) => (error as Failure).code,
        );
      for (const [later, looks, takes] of [
        [0, 1, 0],
        [-60_000, 0, "rate_limited"],
        [119_999, 0, "rate_limited"],
        [1, 1, 0],
        [-60_001, 1, 0],
      ] as const) {
        stage.later(later);
        expect([later, await outcome(false)]).toEqual([later, looks]);
        expect([later, await outcome(true)]).toEqual([later, takes]);
      }
    });

    test("are waited for, where a limit was lowered, as many as are too many", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const first = await ledger.ensureFirstAccount(1_000_000_000n);
      const authorize = (): Promise<unknown> => ledger.authorize(first?.secret ?? "", true);
      const outcome = (): Promise<unknown> =>
        authorize().then(
          () => "done",
          (error: unknown) => (error as Failure).facts.retryAfterSeconds,
        );
      for (let taken = 0; taken < 3; taken += 1) {
        expect(await outcome()).toBe("done");
        stage.later(1_000);
      }
      await ledger.changeAccount(first?.account.id ?? "", { limits: { requestsPerMinute: 1 } });
      expect(await outcome()).toBe(59);
      stage.later(58_999);
      expect(await outcome()).toBe(1);
      stage.later(1);
      expect(await outcome()).toBe("done");
    });
  });
});
