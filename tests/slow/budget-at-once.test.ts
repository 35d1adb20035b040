import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { postgresTests, startPostgres, type PostgresServer } from "../ledger/postgres-server.ts";
import { defaultSettings } from "../ledger/support.ts";

// 200 requests at once against what pays for three, over three replicas on one PostgreSQL, while the tables are read all
// the time. Each request reserves 1,400,000 nanos and is charged 580,000.

const reserved = 1_400_000n;
const rules = { ...defaultSettings, concurrencyPerAccount: 1_000, requestsPerMinute: 10_000 };

describe.skipIf(!postgresTests)("200 requests at once, over three replicas", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function openReplicas(name: string): Promise<{ readonly url: string } & Replicas> {
    const url = await server.createDatabase(name);
    const stack = new AsyncDisposableStack();
    const replicas: StoreLedger[] = [];
    for (let count = 0; count < 3; count += 1)
      replicas.push(stack.use(await openPostgresLedger({ ...rules, url }, {})));
    return { url, replicas, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }

  test("a key's budget for three lets exactly three in, again and again", async () => {
    await using opened = await openReplicas("budget");
    const [ledger] = opened.replicas;
    if (ledger === undefined) throw new Error("there are three");
    const account = await ledger.createAccount("team", 10n ** 12n);
    const budget = { amountNanos: 3n * reserved + reserved / 2n, period: "month" } as const;
    const { secret } = await ledger.createKey(account.id, "key", { budget });
    await using watch = await watchTables(opened.url, {
      sql: "select budget_spent_nanos + budget_held_nanos as used, budget_nanos as most from tributary.api_key",
    });
    expect(await rush(opened.replicas, [secret])).toEqual({ admitted: 3, budget_exceeded: 197 });
    // Each of them was charged 580,000: what that leaves pays for two more, then for one, and one, and none.
    for (const admitted of [2, 1, 1])
      expect(await rush(opened.replicas, [secret])).toEqual({
        admitted,
        budget_exceeded: 200 - admitted,
      });
    expect(await rush(opened.replicas, [secret])).toEqual({ budget_exceeded: 200 });
    expect(await watch.reads()).toBeGreaterThan(0);
    expect((await ledger.verify([])).problems).toEqual([]);
  });

  test("an account's credit for three, shared by keys with budgets for two", async () => {
    await using opened = await openReplicas("credit");
    const [ledger] = opened.replicas;
    if (ledger === undefined) throw new Error("there are three");
    const account = await ledger.createAccount("team", 3n * reserved);
    const secrets: string[] = [];
    for (const name of ["one", "two", "three"]) {
      const budget = { amountNanos: 2n * reserved, period: "total" } as const;
      secrets.push((await ledger.createKey(account.id, name, { budget })).secret);
    }
    await using watch = await watchTables(opened.url, {
      sql: `select budget_spent_nanos + budget_held_nanos as used, budget_nanos as most from tributary.api_key
        union all select (select sum(budget_spent_nanos + budget_held_nanos) from tributary.api_key), ${String(3n * reserved)}
        union all select held_nanos, balance_nanos from tributary.account`,
    });
    const outcomes = await rush(opened.replicas, secrets);
    expect(outcomes["admitted"]).toBe(3);
    expect((outcomes["budget_exceeded"] ?? 0) + (outcomes["insufficient_credit"] ?? 0)).toBe(197);
    expect(await watch.reads()).toBeGreaterThan(0);
    expect((await ledger.verify([])).problems).toEqual([]);
  });
});

interface Replicas extends AsyncDisposable {
  readonly replicas: readonly StoreLedger[];
}

/** 200 requests at once; how many were admitted or refused with which code. Those admitted have ended then. */
async function rush(
  replicas: readonly StoreLedger[],
  secrets: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const admitted: (() => Promise<unknown>)[] = [];
  const asked = Array.from({ length: 200 }, async (_, index): Promise<string> => {
    const ledger = replicas[index % replicas.length];
    const secret = secrets[Math.floor(index / replicas.length) % secrets.length];
    if (ledger === undefined || secret === undefined) throw new Error("each has one");
    const order = orderOf(await ledger.authorize(secret, true));
    try {
      await ledger.admit(order);
    } catch (error) {
      if (error instanceof Failure) return error.code;
      throw error;
    }
    admitted.push(() => ledger.settle(settlementOf(order)));
    return "admitted";
  });
  const outcomes = Object.groupBy(await Promise.all(asked), (outcome) => outcome);
  await Promise.all(admitted.map((settle) => settle()));
  return Object.fromEntries(
    Object.entries(outcomes).map(([outcome, all]) => [outcome, all?.length ?? 0]),
  );
}

/** Reads rows of `used` and `most` without a pause; disposing fails where one had used more. */
async function watchTables(
  url: string,
  { sql }: { readonly sql: string },
): Promise<AsyncDisposable & { reads(): Promise<number> }> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const above: string[] = [];
  const state = { reads: 0, ended: false };
  const watching = (async () => {
    while (!state.ended) {
      for (const { most, used } of (await client.query<{ used: string; most: string }>(sql)).rows)
        if (BigInt(used) > BigInt(most)) above.push(`${used} of ${most}`);
      state.reads += 1;
    }
  })();
  return {
    reads: () => Promise.resolve(state.reads),
    async [Symbol.asyncDispose]() {
      state.ended = true;
      await watching;
      await client.end();
      expect(above).toEqual([]);
    },
  };
}
