import { describe, expect, test } from "vitest";
import { limits } from "../../src/limits.ts";
import { openBatches, type Batches, type BatchOrder } from "../../src/ledger/postgres/batches.ts";
import type { Row } from "../../src/ledger/row.ts";
import type { StoreGroup } from "../../src/ledger/store-operations.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";

// What waits for PostgreSQL goes as one statement, and yet each order is answered for itself. Here the server is the test.

interface Order extends BatchOrder {
  readonly name: string;
}

/** "b2" is an order of the account b. */
function orderOf(name: string, changes: Partial<Order> = {}): Order {
  return { name, accountId: name.slice(0, 1), lockedAs: "key", onlyOnce: name, ...changes };
}

interface Asked {
  readonly names: readonly string[];
  readonly lockMs: number | null;
  /** Answers each order with its own name, the last one first. */
  answer(): void;
  answerWith(rows: readonly Row[]): void;
  fail(error: unknown): void;
}

const locked = new StoreFault("busy", "lock timeout", { reason: "too-long", code: "55P03" });
const away = new StoreFault("unavailable", "gone", { reason: "database-away" });
const poisoned = new StoreFault("bug", "division by zero");

function openServer(): {
  readonly asked: Asked[];
  readonly clock: { nowMs: number };
  readonly outcomes: Map<string, unknown>;
  readonly groups: readonly StoreGroup[];
  readonly send: (...orders: readonly (string | Order)[]) => void;
  /** Time passes, timers come due. */
  readonly wait: (ms: number) => Promise<void>;
} {
  const asked: Asked[] = [];
  const clock = { nowMs: 0 };
  const outcomes = new Map<string, unknown>();
  const groups: StoreGroup[] = [];
  const timers: { readonly atMs: number; readonly run: () => void }[] = [];
  const ask: Batches<Order> = openBatches<Order>(
    {
      query: (_statement, names, lockMs) =>
        new Promise<readonly Row[]>((resolve, reject) => {
          const all = names as readonly string[];
          asked.push({
            names: all,
            lockMs: lockMs as number | null,
            answerWith: resolve,
            answer: () => {
              resolve(all.map((name, at) => ({ place: BigInt(at + 1), name })).toReversed());
            },
            fail: reject,
          });
        }),
    },
    {
      statement: { name: "test", text: "" },
      values: (orders, lockMs) => [orders.map(({ name }) => name), lockMs],
      busyMs: 5_000,
      onGroup: (group) => void groups.push(group),
      monotonicMs: () => clock.nowMs,
      timers: {
        set: (run, delayMs) => timers.push({ atMs: clock.nowMs + delayMs, run }),
        clear: () => {},
      },
    },
  );
  return {
    asked,
    clock,
    outcomes,
    groups,
    send(...orders) {
      for (const one of orders) {
        const order = typeof one === "string" ? orderOf(one) : one;
        ask(order).then(
          (row) => outcomes.set(order.name, row["name"]),
          (error: unknown) => outcomes.set(order.name, error),
        );
      }
    },
    async wait(ms) {
      clock.nowMs += ms;
      for (const timer of timers.splice(0))
        if (timer.atMs <= clock.nowMs) timer.run();
        else timers.push(timer);
      await settled();
    },
  };
}

/** What was read in this turn has been sent, and promises have come to rest. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

const namesOf = (asked: readonly Asked[]): readonly string[] =>
  asked.map(({ names }) => names.join(" "));

describe("batches of orders", () => {
  test("a lone order goes at once, and what comes meanwhile shares the next statement", async () => {
    const { asked, clock, groups, outcomes, send } = openServer();
    send("a1");
    await settled();
    expect(namesOf(asked)).toEqual(["a1"]);
    clock.nowMs += 7;
    send("b1", "c1");
    await settled();
    send("d1");
    await settled();
    expect(asked).toHaveLength(1);
    asked[0]?.answer();
    await settled();
    expect(namesOf(asked)).toEqual(["a1", "b1 c1 d1"]);
    clock.nowMs += 5;
    asked[1]?.answer();
    await settled();
    expect(groups).toEqual([
      { calls: 1, ms: 7 },
      { calls: 3, ms: 5 },
    ]);
    expect(Object.fromEntries(outcomes)).toEqual({ a1: "a1", b1: "b1", c1: "c1", d1: "d1" });
    send("e1");
    await settled();
    expect(namesOf(asked).at(-1)).toBe("e1");
  });

  test("rows are locked in one order, and orders of one row stay as they came", async () => {
    const { asked, outcomes, send } = openServer();
    const keyed = (name: string, lockedAs: string): Order => orderOf(name, { lockedAs });
    send(keyed("b3", "y"), keyed("a2", "y"), keyed("b1", "y"), keyed("a9", "x"), keyed("b2", "x"));
    await settled();
    expect(namesOf(asked)).toEqual(["a9 a2 b2 b3 b1"]);
    asked[0]?.answer();
    await settled();
    for (const name of ["b3", "a2", "b1", "a9", "b2"]) expect(outcomes.get(name)).toBe(name);
  });

  test("a request stands in a statement once", async () => {
    const { asked, send } = openServer();
    const again = { ...orderOf("a1"), name: "a1 again" };
    send("a1", again, "a2");
    await settled();
    asked[0]?.answer();
    await settled();
    expect(namesOf(asked)).toEqual(["a1 a2", "a1 again"]);
  });

  test("an order that fails a statement fails alone; orders before and behind it are answered", async () => {
    const { asked, outcomes, send } = openServer();
    send("a1", "b1", "b2", "b3", "c1");
    await settled();
    asked[0]?.fail(poisoned);
    await settled();
    expect(namesOf(asked).slice(1)).toEqual(["a1", "b1 b2 b3", "c1"]);
    asked[1]?.answer();
    asked[2]?.fail(poisoned);
    asked[3]?.answer();
    for (let at = 4; at < 7; at += 1) {
      await settled();
      if (at === 5) asked[at]?.fail(poisoned);
      else asked[at]?.answer();
    }
    await settled();
    expect(namesOf(asked).slice(4)).toEqual(["b1", "b2", "b3"]);
    expect(Object.fromEntries(outcomes)).toEqual({
      a1: "a1",
      b1: "b1",
      b2: poisoned,
      b3: "b3",
      c1: "c1",
    });
  });

  test("an account that another transaction keeps waits for itself, its later orders behind it", async () => {
    const { asked, outcomes, send } = openServer();
    send("a1", "b1");
    await settled();
    expect(asked[0]?.lockMs).toBe(limits.ledgerBatchLockMs);
    asked[0]?.fail(locked);
    await settled();
    expect(namesOf(asked).slice(1)).toEqual(["a1", "b1"]);
    expect(asked.slice(1).map(({ lockMs }) => lockMs)).toEqual([null, null]);
    asked[2]?.answer();
    send("a2", "b2", "c2", "a3");
    await settled();
    expect(namesOf(asked).at(-1)).toBe("b2 c2");
    asked.at(-1)?.answer();
    await settled();
    expect([...outcomes.keys()].toSorted()).toEqual(["b1", "b2", "c2"]);
    asked[1]?.answer();
    await settled();
    expect(namesOf(asked).at(-1)).toBe("a2 a3");
    asked.at(-1)?.answer();
    await settled();
    expect(outcomes.get("a3")).toBe("a3");
    // Once it can be had again it goes with the others.
    send("a4", "b4");
    await settled();
    expect(namesOf(asked).at(-1)).toBe("a4 b4");
  });

  test("what is wrong with the server is said to all of a batch, which is not asked for again", async () => {
    const { asked, outcomes, send } = openServer();
    send("a1", "b1");
    await settled();
    asked[0]?.fail(away);
    await settled();
    expect([outcomes.get("a1"), outcomes.get("b1"), asked.length]).toEqual([away, away, 1]);
    send("c1");
    await settled();
    asked[1]?.answer();
    await settled();
    expect(outcomes.get("c1")).toBe("c1");
  });

  test("an order that the answer leaves out is told so, and no other's answer is taken for its own", async () => {
    const { asked, outcomes, send } = openServer();
    send("a1", "b1");
    await settled();
    asked[0]?.answerWith([{ place: 2n, name: "b1" }]);
    await settled();
    expect(outcomes.get("b1")).toBe("b1");
    expect(String(outcomes.get("a1"))).toContain("no answer from test");
  });

  test("a statement takes so many and no more, and so many may wait and no more", async () => {
    const { asked, outcomes, send } = openServer();
    const all = Array.from({ length: limits.ledgerBatchMax + 1 }, (_, at) => `a${String(at)}`);
    send(...all);
    await settled();
    expect(asked[0]?.names).toEqual(all.slice(0, -1));
    send(...Array.from({ length: limits.ledgerWaitingMax - 1 }, (_, at) => `b${String(at)}`));
    send("c1");
    await settled();
    expect(outcomes.size).toBe(1);
    expect(outcomes.get("c1")).toMatchObject({ kind: "busy", reason: "overloaded" });
  });

  test("those who wait behind a silent statement give up in their own time, and are not sent", async () => {
    const { asked, outcomes, send, wait } = openServer();
    send("a1");
    await wait(0);
    await wait(2_000);
    send("b1");
    await wait(2_000);
    send("c1");
    await wait(2_999);
    expect(outcomes.size).toBe(0);
    await wait(1);
    expect([...outcomes.keys()]).toEqual(["b1"]);
    // No lost answer, which would be asked for again: it was not sent.
    expect(outcomes.get("b1")).toMatchObject({ kind: "busy", reason: "database-silent" });
    asked[0]?.answer();
    await wait(0);
    expect(namesOf(asked)).toEqual(["a1", "c1"]);
    // Also behind an account that is asked for apart.
    asked[1]?.fail(locked);
    await wait(0);
    send("c2");
    await wait(0);
    await wait(5_000);
    expect(outcomes.get("c2")).toMatchObject({ reason: "too-long" });
    asked.at(-1)?.answer();
    await wait(0);
    expect(outcomes.get("c1")).toBe("c1");
    expect(asked).toHaveLength(3);
    // Who has waited for so long with others is not asked for apart any more.
    send("d1", "e1");
    await wait(0);
    await wait(5_000);
    asked.at(-1)?.fail(locked);
    await wait(0);
    expect(outcomes.get("d1")).toMatchObject({ reason: "too-long" });
    expect(asked).toHaveLength(4);
  });
});
