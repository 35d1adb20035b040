import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import type { PostgresStoreParts, PostgresStoreSettings } from "../../src/ledger/postgres/store.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { codeOf, defaultSettings } from "./support.ts";
import { orderOf, settlementOf } from "./orders.ts";

// Replicas on one server: what the replicas promise together, and what happens when the server goes away.

let server: PostgresDatabases;
let databases = 0;
const rules = {
  prices: defaultSettings.prices,
  concurrencyPerAccount: 4,
  requestsPerMinute: 600,
  leaseMs: 60_000,
};

function open(
  url: string,
  settings: Partial<PostgresStoreSettings> = {},
  parts: PostgresStoreParts = {},
): Promise<StoreLedger> {
  return openPostgresLedger({ ...rules, url, ...settings }, parts);
}

function newDatabase(): Promise<string> {
  databases += 1;
  return server.createDatabase(`ledger_${String(databases)}`);
}

/** Replicas on a database of their own, and one account with its key. */
async function openReplicas(
  count: number,
  settings: Partial<PostgresStoreSettings> = {},
  creditNanos = 10n ** 12n,
): Promise<
  AsyncDisposable & { readonly url: string; readonly all: readonly StoreLedger[]; secret: string }
> {
  const url = await newDatabase();
  const all: StoreLedger[] = [];
  while (all.length < count) all.push(await open(url, settings));
  const first = await all[0]?.ensureFirstAccount(creditNanos);
  if (first === undefined || first === null) throw new Error("the ledger was not empty");
  return {
    url,
    all,
    secret: first.secret,
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((ledger) => ledger[Symbol.asyncDispose]()));
    },
  };
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

function pick<Value>(all: readonly Value[], at: number): Value {
  const one = all[at % all.length];
  if (one === undefined) throw new Error("nothing to pick from");
  return one;
}

function times(count: number, codes: readonly string[], code: string): void {
  expect(codes.filter((one) => one === code)).toHaveLength(count);
}

async function accountRow(url: string): Promise<Readonly<Record<string, unknown>>> {
  const [row] = await execute(
    url,
    "select balance_nanos, held_nanos, running, entries from tributary.account",
  );
  return row ?? {};
}

/** What is wrong with the rows; [] when all is well. */
async function problems(url: string): Promise<readonly unknown[]> {
  return execute(
    url,
    `select a.id from tributary.account a where
       (balance_nanos, held_nanos, entries) <>
         (select coalesce(sum(balance_delta_nanos), 0), coalesce(sum(held_delta_nanos), 0), count(*)
          from tributary.entry where account_id = a.id)
       or (held_nanos, running) <>
         (select coalesce(sum(reserved_nanos), 0), count(*) from tributary.reservation
          where account_id = a.id and state = 'open')
     union all
     select request_id from tributary.entry where kind in ('settle', 'expire') group by request_id having count(*) > 1`,
  );
}

describe.skipIf(!postgresTests)("the ledger in PostgreSQL", () => {
  beforeAll(async () => {
    server = await openPostgresDatabases();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("admits no more at once than the limit, however many replicas ask at the same moment", async () => {
    await using replicas = await openReplicas(3, { connections: 6 });
    const { all, secret, url } = replicas;
    for (let round = 0; round < 8; round += 1) {
      const callers = await Promise.all(
        Array.from({ length: 24 }, (_, at) => pick(all, at).authorize(secret, true)),
      );
      const orders = callers.map((caller) => orderOf(caller));
      const codes = await Promise.all(orders.map((one, at) => refusal(pick(all, at).admit(one))));
      times(4, codes, "done");
      times(20, codes, "too_many_concurrent");
      const admitted = orders.filter((_, at) => codes[at] === "done");
      // Twice each, from different replicas: one of the two does it.
      const settled = await Promise.all(
        [...admitted, ...admitted].map((one, at) => pick(all, at).settle(settlementOf(one))),
      );
      times(
        4,
        settled.map((one) => String(one.applied)),
        "true",
      );
      expect(new Set(settled.map((one) => one.chargedNanos))).toEqual(new Set([580_000n]));
    }
    expect(await problems(url)).toEqual([]);
    expect(await accountRow(url)).toMatchObject({ held_nanos: "0", running: 0 });
    // The refused gave their tickets back.
    expect((await pick(all, 0).authorize(secret, false)).rate.remaining).toBe(600 - 32);
  });

  test("never holds or spends more than there is, however many replicas ask", async () => {
    // Three reservations of 1,400,000 nanos fit.
    await using replicas = await openReplicas(3, { concurrencyPerAccount: 50 }, 4_300_000n);
    const { all, secret, url } = replicas;
    const callers = await Promise.all(all.map((ledger) => ledger.authorize(secret, false)));
    const codes = await Promise.all(
      Array.from({ length: 30 }, (_, at) => {
        return refusal(pick(all, at).admit(orderOf(pick(callers, at))));
      }),
    );
    times(3, codes, "done");
    times(27, codes, "insufficient_credit");
    expect(await problems(url)).toEqual([]);
  });

  test("counts a key's requests over all replicas, exactly", async () => {
    await using replicas = await openReplicas(3, { requestsPerMinute: 20 });
    const codes = await Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        refusal(pick(replicas.all, at).authorize(replicas.secret, true)),
      ),
    );
    times(20, codes, "done");
    times(40, codes, "rate_limited");
  });

  test("a revocation and a disabled account hold in every replica from the next request on", async () => {
    await using replicas = await openReplicas(2);
    const one = pick(replicas.all, 0);
    const other = pick(replicas.all, 1);
    const caller = await other.authorize(replicas.secret, true);
    await one.setAccountStatus(caller.accountId, "disabled");
    expect(await refusal(other.authorize(replicas.secret, true))).toBe("account_disabled");
    expect(await refusal(other.admit(orderOf(caller)))).toBe("account_disabled");
    await one.setAccountStatus(caller.accountId, "active");
    await one.revokeKey(caller.keyId);
    expect(await refusal(other.authorize(replicas.secret, true))).toBe("authentication");
    expect(await refusal(other.admit(orderOf(caller)))).toBe("authentication");
  });

  test("an account's long history makes nothing slower, also before the server has statistics", async () => {
    const url = await newDatabase();
    const generations = 300;
    {
      await using ledger = await open(url, { connections: 1 });
      const first = await ledger.ensureFirstAccount(10n ** 12n);
      const caller = await ledger.authorize(first?.secret ?? "", true);
      for (let n = 0; n < generations; n += 1) {
        const one = orderOf(caller);
        await ledger.admit(one);
        await ledger.renew([one.requestId]);
        await ledger.settle(settlementOf(one));
        if (n % 10 === 0) await ledger.authorize(first?.secret ?? "", true);
      }
      await ledger.expire();
    }
    // The server counts what a connection has read once that has ended.
    const read = async (): Promise<number> => {
      const [row] = await execute(
        url,
        `select (select sum(seq_tup_read) from pg_stat_user_tables)
           + (select sum(idx_tup_read) from pg_stat_user_indexes) as rows,
           (select sum(idx_scan) from pg_stat_user_indexes) as scans`,
      );
      return Number(row?.["scans"]) > 5 * generations ? Number(row?.["rows"]) : Number.NaN;
    };
    await expect.poll(read).toBeLessThan(60 * generations);
  });

  test("a budget's next period begins when the last one is over, and never one that is over too", async () => {
    await using replicas = await openReplicas(1, {});
    const { all, secret, url } = replicas;
    const keyId = (await all[0]?.authorize(secret, false))?.keyId ?? "";
    await all[0]?.changeKey(keyId, { budget: { amountNanos: 10n ** 9n, period: "day" } });
    const dayMs = 86_400_000;
    const bounds = "select budget_begin_ms as begun, budget_end_ms as ended from tributary.api_key";
    const [before] = await execute(url, bounds);
    const endMs = Number(before?.["ended"]);
    for (const [atMs, begunMs] of [
      [endMs - 1, endMs - dayMs],
      [endMs + dayMs, endMs - dayMs],
      [endMs, endMs],
    ] as const) {
      const times = [endMs, endMs + dayMs, atMs].map(String).join(", ");
      await execute(
        url,
        `select tributary.begin_period(account_id, id, ${times})::text from tributary.api_key`,
      );
      const [after] = await execute(url, bounds);
      expect([atMs, after?.["begun"]]).toEqual([atMs, String(begunMs)]);
    }
  });

  test("settling and expiring at the same moment resolve a reservation once", async () => {
    const url = await newDatabase();
    let now = 1_000_000;
    const parts = { now: () => now };
    await using one = await open(url, { concurrencyPerAccount: 50 }, parts);
    await using other = await open(url, { concurrencyPerAccount: 50 }, parts);
    const first = await one.ensureFirstAccount(10n ** 12n);
    const caller = await one.authorize(first?.secret ?? "", false);
    const orders = Array.from({ length: 20 }, () => orderOf(caller));
    for (const each of orders) await one.admit(each);
    now += 60_000;
    const [expired, ...settled] = await Promise.all([
      other.expire(),
      ...orders.map((each) => one.settle(settlementOf(each))),
      other.renew(orders.map(({ requestId }) => requestId)),
    ]);
    const applied = settled.filter((answer) => "applied" in answer && answer.applied).length;
    // What was being settled or renewed at that moment is left to the next time.
    now += 60_000;
    expect(expired + applied + (await other.expire())).toBe(20);
    expect(await problems(url)).toEqual([]);
    expect(await accountRow(url)).toMatchObject({
      balance_nanos: String(10n ** 12n - 580_000n * BigInt(applied)),
      held_nanos: "0",
    });
  });
});
