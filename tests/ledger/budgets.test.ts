import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Budget } from "../../src/ledger/budget.ts";
import { setBudget as stepsOf } from "../../src/ledger/administration/budget-administration.ts";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import { openStore, type SqliteStore } from "../../src/ledger/sqlite/store.ts";
import {
  defaultSettings,
  failureOf,
  openTill,
  refusal,
  run,
  temporaryLedger,
  type Till,
} from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

// A request of 1,000 tokens in and 100 out reserves 1,400,000 nanos; settled with 500 and 50 it is charged 700,000.
const reserved = 1_400_000n;
const charged = 700_000n;
const day = 86_400_000;
const usage = [500, 50] as const;

function open(): SqliteStore {
  return openNewStore();
}

function setBudget(store: SqliteStore, budget: Partial<Budget> | null, nowMs = 0) {
  return run(store, "changeKey", { id: "key_a", budget }, nowMs).budget;
}

function stateOf(store: SqliteStore, nowMs = 0): readonly (bigint | number | null | undefined)[] {
  const budget = run(store, "findKey", "key_a", nowMs)?.budget;
  return [budget?.spentNanos, budget?.heldNanos, budget?.endMs];
}

function verified(store: SqliteStore): unknown {
  return run(store, "verify", { against: [], listHeads: false }).problems;
}

function rich(store: SqliteStore): Till {
  return openTill(store, "a", 1_000_000_000n);
}

describe("a budget", () => {
  test("counts what running requests hold, and what ended ones were charged", () => {
    using store = open();
    const till = rich(store);
    setBudget(store, { amountNanos: 3n * reserved, period: "day" });
    for (const id of ["req_1", "req_2", "req_3"] as const) till.admit(id);
    expect(refusal(() => till.admit("req_4"))).toBe("budget_exceeded");
    expect(stateOf(store)).toEqual([0n, 3n * reserved, day]);
    till.settle("req_1", usage);
    expect(stateOf(store)).toEqual([charged, 2n * reserved, day]);
    // Half a request is free: an omitted allowance takes what fits, an explicit one does not.
    expect(refusal(() => till.admit("req_4"))).toBe("budget_exceeded");
    const smaller = till.admit("req_5", { requested: null, inputBound: 500 });
    expect(smaller).toEqual({ allowance: 50, reservedNanos: 700_000n });
    till.settle("req_2", null);
    expect(stateOf(store)).toEqual([charged, reserved + 700_000n, day]);
    expect(verified(store)).toEqual([]);
  });

  test("is refused with its figures, and says when its period ends", () => {
    using store = open();
    const till = rich(store);
    setBudget(store, { amountNanos: 2_000_000n, period: "month", timezone: "Europe/Berlin" });
    till.admit("req_1");
    const failure = failureOf(() => till.admit("req_2"));
    expect(failure.code).toBe("budget_exceeded");
    expect(failure.facts.shortage).toEqual({
      balance: "1",
      held: "0.0014",
      needed: "0.0014",
      affordableOutputTokens: 0,
      waitingHelps: true,
      budget: { amount: "0.002", left: "0.0006", endsAt: "1970-01-31T23:00:00.000Z" },
    });
    for (const word of ["key_a", '"a"', "0.002", "0.0006", "1970-01-31T23:00:00.000Z"])
      expect(failure.message).toContain(word);
    till.settle("req_1", [1_000, 100]);
    const spent = failureOf(() => till.admit("req_3"));
    expect(spent.facts.shortage).toMatchObject({ waitingHelps: false });
  });

  test("is not in the way where the credit leaves less", () => {
    using store = open();
    const till = openTill(store, "a", 1_500_000n);
    setBudget(store, { amountNanos: 1_600_000n, period: "total" });
    till.admit("req_1");
    expect(refusal(() => till.admit("req_2"))).toBe("insufficient_credit");
  });

  test("begins again with its period, and what runs over the end counts where it was admitted", () => {
    using store = open();
    const till = rich(store);
    setBudget(store, { amountNanos: 2n * reserved, period: "day" });
    till.admit("req_1", {}, day - 1);
    till.admit("req_2", {}, day - 1);
    expect(refusal(() => till.admit("req_3", {}, day - 1))).toBe("budget_exceeded");
    // Shown as of now, though the row still has the day before.
    expect(stateOf(store, day)).toEqual([0n, 0n, 2 * day]);
    till.admit("req_3", {}, day);
    till.settle("req_1", usage, day);
    run(store, "renew", ["req_2", "req_3"], day);
    expect(stateOf(store, day)).toEqual([0n, reserved, 2 * day]);
    run(store, "expire", null, day + 60_000);
    expect(stateOf(store, day + 60_000)).toEqual([0n, 0n, 2 * day]);
    expect(verified(store)).toEqual([]);
  });

  test("of all time never begins again", () => {
    using store = open();
    const till = rich(store);
    till.admit("req_0", {}, 5);
    till.settle("req_0", usage, 6);
    expect(setBudget(store, { amountNanos: charged + reserved, period: "total" }, 9)).toMatchObject(
      {
        spentNanos: charged,
        endMs: null,
      },
    );
    till.admit("req_1", {}, 900 * day);
    expect(refusal(() => till.admit("req_2", {}, 900 * day))).toBe("budget_exceeded");
    expect(verified(store)).toEqual([]);
  });

  test("that is set or changed counts what was charged and is held since its present period began", () => {
    using store = open();
    const till = rich(store);
    till.admit("req_1", {}, 10);
    till.admit("req_2", {}, day + 10);
    till.settle("req_1", usage, day + 20);
    till.admit("req_3", {}, day + 20);
    till.settle("req_3", usage, day + 30);
    const amountNanos = 10n * reserved;
    expect(setBudget(store, { amountNanos, period: "day" }, day + 40)).toMatchObject({
      spentNanos: charged,
      heldNanos: reserved,
    });
    expect(verified(store)).toEqual([]);
    expect(setBudget(store, { period: "month" }, day + 50)).toMatchObject({
      amountNanos,
      timezone: "UTC",
      spentNanos: 2n * charged,
      heldNanos: reserved,
    });
    till.settle("req_2", usage, day + 60);
    expect(stateOf(store, day + 60)).toEqual([3n * charged, 0n, 31 * day]);
    expect(verified(store)).toEqual([]);
    expect(setBudget(store, null, day + 70)).toBeNull();
    till.admit("req_4", {}, day + 80);
    setBudget(store, { amountNanos, period: "day" }, 3 * day);
    till.settle("req_4", usage, 3 * day);
    expect(stateOf(store, 3 * day)).toEqual([0n, 0n, 4 * day]);
    expect(verified(store)).toEqual([]);
  });

  test("that is set later counts what was admitted in the first instant of its period", () => {
    using store = open();
    const till = rich(store);
    till.admit("req_1", {}, day);
    till.admit("req_2", {}, day);
    till.settle("req_1", usage, day + 1);
    setBudget(store, { amountNanos: 5n * reserved, period: "day" }, day + 2);
    expect(stateOf(store, day + 2)).toEqual([charged, reserved, 2 * day]);
    expect(verified(store)).toEqual([]);
  });

  test("goes on as it is where the clock is set back", () => {
    using store = open();
    const till = rich(store);
    setBudget(store, { amountNanos: reserved, period: "day" }, 5 * day);
    till.admit("req_1", {}, 5 * day);
    expect(refusal(() => till.admit("req_2", {}, 3 * day))).toBe("budget_exceeded");
    till.settle("req_1", null, 3 * day);
    till.admit("req_3", {}, 3 * day);
    expect(stateOf(store, 3 * day)).toEqual([0n, reserved, 6 * day]);
    expect(verified(store)).toEqual([]);
  });

  test("that is less than what is spent leaves nothing", () => {
    using store = open();
    const till = rich(store);
    setBudget(store, { amountNanos: 5n * reserved, period: "week" });
    till.admit("req_1");
    till.settle("req_1", usage);
    setBudget(store, { amountNanos: 1n });
    expect(failureOf(() => till.admit("req_2")).facts.shortage?.budget?.left).toBe("0");
    setBudget(store, { amountNanos: 0n });
    expect(refusal(() => till.admit("req_3"))).toBe("budget_exceeded");
  });

  test.each([
    [{ period: "day" }, "budget.amount"],
    [{ amountNanos: 1n }, "budget.period"],
    [{ amountNanos: -1n, period: "day" }, "budget.amount"],
    [{ amountNanos: 10n ** 19n, period: "day" }, "budget.amount"],
    [{ amountNanos: 1n, period: "year" }, "budget.period"],
    [{ amountNanos: 1n, period: "day", timezone: "Mars/Phobos" }, "budget.timezone"],
  ])("that is none is refused by its field: %s", (budget, field) => {
    using store = open();
    rich(store);
    expect(() => setBudget(store, budget as Partial<Budget>)).toThrow(field);
    expect(run(store, "findKey", "key_a")?.budget).toBeNull();
  });
});

describe("a budget that is set late", () => {
  test("counts what the key was charged in steps, and what is charged between them once", () => {
    using store = open();
    const till = rich(store);
    let ended = 0;
    const spend = (nowMs: number): void => {
      ended += 1;
      till.admit(`req_${String(ended)}`, {}, nowMs);
      till.settle(`req_${String(ended)}`, usage, nowMs);
    };
    // One before the day, then six in it, of which some began at once.
    for (const nowMs of [day - 1, day, day + 1, day + 1, day + 1, day + 7, day + 9]) spend(nowMs);
    const budget = { amountNanos: 100n * reserved, period: "day" } as const;
    const order = { id: "key_a", budget, receiptsMax: 2 };
    let counted = run(store, "countCharges", { ...order, counted: null }, day + 10);
    let steps = 1;
    for (; counted.nextMs !== null; steps += 1) {
      spend(day + 8);
      counted = run(store, "countCharges", { ...order, counted }, day + 10);
    }
    expect(steps).toBeGreaterThan(2);
    spend(day + 10);
    till.admit("req_open", {}, day + 10);
    run(store, "changeKey", { id: "key_a", budget, counted }, day + 11);
    expect(run(store, "findKey", "key_a")?.budget).toMatchObject({
      spentNanos: BigInt(ended - 1) * charged,
      heldNanos: reserved,
    });
    expect(verified(store)).toEqual([]);
  });

  test("counts anew where its period has begun meanwhile", () => {
    using store = open();
    const till = rich(store);
    till.admit("req_1", {}, day - 1);
    till.settle("req_1", usage, day - 1);
    const budget = { amountNanos: 100n * reserved, period: "day" } as const;
    const counted = run(store, "countCharges", { id: "key_a", budget, counted: null }, day - 1);
    expect(counted).toMatchObject({ sinceMs: 0, nanos: charged, nextMs: null });
    run(store, "changeKey", { id: "key_a", budget, counted }, day);
    expect(run(store, "findKey", "key_a", day)?.budget).toMatchObject({ spentNanos: 0n });
    expect(verified(store)).toEqual([]);
  });

  test("reads while requests wait what runs, and what has ended since it was counted", () => {
    using database = openDatabase({ path: ":memory:", synchronous: "normal" });
    using store = open();
    rich(store);
    const key = run(store, "findKey", "key_a");
    if (key === null) throw new Error("no key");
    const budget = { amountNanos: 1n, period: "total", timezone: "UTC" } as const;
    const counted = { sinceMs: 0, through: 9, nanos: 5n, nextMs: null };
    const setting = stepsOf(key, budget, { counted, nowMs: 1 });
    const plans: string[] = [];
    const answers = { entries: 9n, spent: 0n, until_ms: -1n };
    for (let step = setting.next(); step.done !== true;) {
      const { value } = step;
      if (value.type !== "statement") throw new Error("statements alone");
      const sql = value.sql.replaceAll("tributary.", "").replaceAll(/\$(\d+)/gu, "?$1");
      const plan = database.prepare(`explain query plan ${sql}`).all(...value.values);
      plans.push(plan.map(({ detail }) => String(detail)).join(", "));
      step = setting.next(sql.includes("state = 'open'") ? [] : [answers]);
    }
    expect(plans).toEqual([
      "SCAN reservation USING INDEX reservation_lease",
      "SEARCH reservation USING INDEX reservation_resolution (account_id=? AND resolved_sequence>?)",
      "SEARCH archive USING PRIMARY KEY (account_id=?)",
      "SEARCH account USING INDEX sqlite_autoindex_account_1 (id=?)",
      "SEARCH api_key USING INDEX sqlite_autoindex_api_key_1 (id=?)",
    ]);
  });
});

test.each(["budget_spent_nanos", "budget_held_nanos"])(
  "verify finds a budget whose %s was changed behind the ledger's back",
  (column) => {
    using file = temporaryLedger();
    using store = openStore({ ...defaultSettings, path: file.path });
    const till = rich(store);
    setBudget(store, { amountNanos: 5n * reserved, period: "day" });
    till.admit("req_1");
    till.settle("req_1", usage);
    till.admit("req_2");
    expect(verified(store)).toEqual([]);
    using raw = new DatabaseSync(file.path);
    raw.exec(`update api_key set ${column} = ${column} - 1`);
    expect(verified(store)).toMatchObject([{ code: "budget-differs", account: "acct_a" }]);
  },
);
