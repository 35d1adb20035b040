import { describe, expect, test } from "vitest";
import type { Grant } from "../../src/ledger/grant.ts";
import { limits } from "../../src/limits.ts";
import type { SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { openTill, refusal, run, secretHash } from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

// A request of 1,000 tokens in and 100 out reserves 1,400,000 nanos; settled with 500 and 50 it is charged 700,000.
const day = 86_400_000;
const usage = [500, 50] as const;
const amountNanos = 2_000_000n;

function open(): SqliteStore {
  return openNewStore();
}

function setGrant(store: SqliteStore, grant: Partial<Grant> | null, nowMs = 0) {
  return run(store, "changeAccount", { id: "acct_a", grant }, nowMs);
}

function stateOf(store: SqliteStore): readonly (bigint | number | null)[] {
  const { balanceNanos, grant, grantLeftNanos } = run(store, "showAccount", "acct_a");
  return [balanceNanos, grantLeftNanos, grant?.nextMs ?? null];
}

function entriesOf(store: SqliteStore): readonly unknown[] {
  const entries = run(store, "pageEntries", { accountId: "acct_a", before: null, rowsMax: 50 });
  return entries
    .filter(({ requestId }) => requestId === null)
    .map(({ balanceDeltaNanos, kind, reference }) => [kind, balanceDeltaNanos, reference])
    .toReversed();
}

function pay(store: SqliteStore, nowMs: number): void {
  run(store, "payGrants", { accountId: null }, nowMs);
  expect(run(store, "verify", { against: [], listHeads: false }).problems).toEqual([]);
}

describe("a grant", () => {
  test("is paid at once where it is the first, and at each begin of a period once", () => {
    using store = open();
    openTill(store, "a", 0n);
    setGrant(store, { amountNanos, every: "day" }, 5);
    expect(stateOf(store)).toEqual([amountNanos, amountNanos, day]);
    pay(store, day - 1);
    pay(store, day);
    pay(store, day + 1);
    expect(entriesOf(store)).toEqual([
      ["grant", amountNanos, "grant:1970-01-01T00:00:00.000Z"],
      ["correction", -amountNanos, null],
      ["grant", amountNanos, "grant:1970-01-02T00:00:00.000Z"],
    ]);
    expect(stateOf(store)).toEqual([amountNanos, amountNanos, 2 * day]);
  });

  test("goes on into the next period where it is carried over", () => {
    using store = open();
    openTill(store, "a", 0n);
    setGrant(store, { amountNanos, every: "day", carryOver: true });
    pay(store, day);
    expect(stateOf(store)).toEqual([2n * amountNanos, 2n * amountNanos, 2 * day]);
  });

  test("is spent before what was topped up, of which its rest takes nothing", () => {
    using store = open();
    const till = openTill(store, "a", 10_000_000n);
    setGrant(store, { amountNanos, every: "day" });
    till.admit("req_1");
    till.settle("req_1", usage);
    expect(stateOf(store)).toEqual([11_300_000n, 1_300_000n, day]);
    run(store, "creditAccount", { id: "acct_a", amountNanos: 1_000_000n, note: null });
    run(store, "creditAccount", { id: "acct_a", amountNanos: -300_000n, note: null });
    expect(stateOf(store)).toEqual([12_000_000n, 1_000_000n, day]);
    pay(store, day);
    expect(stateOf(store)).toEqual([13_000_000n, amountNanos, 2 * day]);
    for (const id of ["req_2", "req_3", "req_4"] as const) {
      till.admit(id, {}, day);
      till.settle(id, usage, day);
    }
    // Three times 700,000 are more than it: the rest was of the top-up.
    expect(stateOf(store)).toEqual([10_900_000n, 0n, 2 * day]);
    pay(store, 2 * day);
    expect(stateOf(store)).toEqual([12_900_000n, amountNanos, 3 * day]);
  });

  test("leaves what running requests hold, which goes a period later", () => {
    using store = open();
    const till = openTill(store, "a", 0n);
    setGrant(store, { amountNanos, every: "day" });
    till.admit("req_1", {}, day - 1);
    pay(store, day);
    expect(stateOf(store)).toEqual([amountNanos + 1_400_000n, amountNanos + 1_400_000n, 2 * day]);
    till.settle("req_1", usage, day + 1);
    pay(store, 2 * day);
    expect(stateOf(store)).toEqual([amountNanos, amountNanos, 3 * day]);
  });

  test("is paid by the first request of the period, also of an account that has nothing", () => {
    using store = open();
    const till = openTill(store, "a", 0n);
    setGrant(store, { amountNanos, every: "day" });
    run(store, "creditAccount", { id: "acct_a", amountNanos: -amountNanos, note: null });
    const asked = {
      accountId: "acct_a",
      keyId: "key_a",
      secretHash: secretHash("a"),
      ticketId: null,
      needsCredit: true,
    } as const;
    const authorize = (nowMs: number): string =>
      refusal(() => run(store, "authorize", asked, nowMs));
    expect(authorize(day - 1)).toBe("insufficient_credit");
    expect(authorize(day)).toBe("done");
    expect(refusal(() => till.admit("req_1", {}, day - 1))).toBe("insufficient_credit");
    expect(refusal(() => till.admit("req_2", {}, day))).toBe("done");
    expect(stateOf(store)).toEqual([amountNanos, amountNanos, 2 * day]);
  });

  test("never makes a balance larger than any may be, and the rest of the one before makes room", () => {
    using store = open();
    const most = limits.creditNanosMax;
    openTill(store, "a", most - 500_000n);
    setGrant(store, { amountNanos, every: "day" });
    expect(stateOf(store)).toEqual([most, 500_000n, day]);
    pay(store, day);
    expect(stateOf(store)).toEqual([most, 500_000n, 2 * day]);
  });

  test("of periods that nothing saw is not made up for, and a clock that is set back makes none again", () => {
    using store = open();
    openTill(store, "a", 0n);
    setGrant(store, { amountNanos, every: "day", carryOver: true });
    pay(store, 9 * day + 5);
    expect(stateOf(store)).toEqual([2n * amountNanos, 2n * amountNanos, 10 * day]);
    pay(store, 8 * day);
    pay(store, 9 * day + 6);
    expect(stateOf(store)).toEqual([2n * amountNanos, 2n * amountNanos, 10 * day]);
  });

  test("that is changed holds from the next begin, and that is removed leaves what is there", () => {
    using store = open();
    openTill(store, "a", 0n);
    setGrant(store, { amountNanos, every: "month" });
    setGrant(store, { amountNanos: 5n, every: "week", carryOver: true }, 3 * day);
    expect(stateOf(store)).toEqual([amountNanos, amountNanos, 31 * day]);
    pay(store, 31 * day);
    expect(stateOf(store)).toEqual([amountNanos + 5n, amountNanos + 5n, 32 * day]);
    setGrant(store, null, 31 * day);
    expect(stateOf(store)).toEqual([amountNanos + 5n, amountNanos + 5n, null]);
    pay(store, 90 * day);
    expect(stateOf(store)).toEqual([amountNanos + 5n, amountNanos + 5n, null]);
    // Set again in a period that was paid: nothing, until the next one.
    setGrant(store, { amountNanos, every: "week", carryOver: true }, 31 * day + 1);
    expect(stateOf(store)).toEqual([amountNanos + 5n, amountNanos + 5n, 32 * day]);
  });

  test("set on the 31st goes on with the first instant of each month, of its zone", () => {
    using store = open();
    openTill(store, "a", 0n);
    // The last millisecond of January in New York, where April is an hour nearer to UTC.
    const set = Date.parse("2026-02-01T04:59:59.999Z");
    setGrant(store, { amountNanos, every: "month", timezone: "America/New_York" }, set);
    const begins = ["2026-02-01T05:00Z", "2026-03-01T05:00Z", "2026-04-01T04:00Z"].map(Date.parse);
    for (const [at, beginMs] of begins.entries()) {
      expect(stateOf(store)[2]).toBe(beginMs);
      pay(store, beginMs - 1);
      expect(entriesOf(store)).toHaveLength(1 + 2 * at);
      pay(store, beginMs);
      expect(entriesOf(store)).toHaveLength(3 + 2 * at);
    }
    const grants = entriesOf(store).filter((entry) => (entry as string[])[0] === "grant");
    expect(grants).toEqual(
      [Date.parse("2026-01-01T05:00Z"), ...begins].map((beginMs) => [
        "grant",
        amountNanos,
        `grant:${new Date(beginMs).toISOString()}`,
      ]),
    );
  });

  test.each([
    [{ every: "day" }, "grant.amount"],
    [{ amountNanos: 0n, every: "day" }, "grant.amount"],
    [{ amountNanos: 1n }, "grant.every"],
    [{ amountNanos: 1n, every: "total" }, "grant.every"],
    [{ amountNanos: 1n, every: "day", timezone: "Mars/Phobos" }, "grant.timezone"],
  ])("that is none is refused by its field: %s", (grant, field) => {
    using store = open();
    openTill(store, "a", 0n);
    expect(() => setGrant(store, grant as Partial<Grant>)).toThrow(field);
    expect(stateOf(store)).toEqual([0n, 0n, null]);
  });
});
