import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AdmitOrder } from "../../src/ledger/ledger.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openProxy } from "./postgres-proxy.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { codeOf, defaultSettings } from "./support.ts";

// Requests that share a statement: each is refused, fails or is repeated for itself.

let server: PostgresDatabases;
let databases = 0;

function open(url: string, changes: { readonly concurrencyPerAccount?: number } = {}) {
  return openPostgresLedger({ ...defaultSettings, ...changes, url }, {});
}

interface Accounts {
  readonly ids: readonly string[];
  readonly secrets: readonly string[];
}

async function makeAccounts(ledger: StoreLedger, credits: readonly bigint[]): Promise<Accounts> {
  const ids: string[] = [];
  const secrets: string[] = [];
  for (const credit of credits) {
    const { id } = await ledger.createAccount("one of several", credit);
    ids.push(id);
    secrets.push((await ledger.createKey(id, "one")).secret);
  }
  return { ids, secrets };
}

async function ordersOf(ledger: StoreLedger, secrets: readonly string[]): Promise<AdmitOrder[]> {
  const callers = await Promise.all(secrets.map((secret) => ledger.authorize(secret, true)));
  return callers.map((caller) => orderOf(caller));
}

async function outcomesOf(steps: readonly Promise<unknown>[]): Promise<readonly string[]> {
  return Promise.all(steps.map((step) => step.then(() => "done", codeOf)));
}

const plenty = 10n ** 12n;
const many = (count: number): bigint[] => Array.from({ length: count }, () => plenty);

describe.skipIf(!postgresTests)("requests that share a statement", () => {
  beforeAll(async () => {
    server = await openPostgresDatabases();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  function newDatabase(): Promise<string> {
    databases += 1;
    return server.createDatabase(`batches_${String(databases)}`);
  }

  test("a key whose requests of the minute are used up is refused alone", async () => {
    await using ledger = await open(await newDatabase());
    const { ids, secrets } = await makeAccounts(ledger, many(3));
    // Callers stand in the order of their accounts: one before the refusal, and after it one that takes no ticket.
    const inOrder = ids.map((id, at) => ({ id, secret: secrets[at] ?? "" }));
    inOrder.sort((one, other) => (one.id < other.id ? -1 : 1));
    const limits = { concurrentRequests: null, requestsPerMinute: 1, outputTokensMax: null };
    await ledger.changeAccount(inOrder[1]?.id ?? "", { limits });
    const authorizeAll = (): Promise<readonly string[]> =>
      outcomesOf(inOrder.map(({ secret }, at) => ledger.authorize(secret, at < 2)));
    expect(await authorizeAll()).toEqual(["done", "done", "done"]);
    expect(await authorizeAll()).toEqual(["done", "rate_limited", "done"]);
  });

  test("each has its own refusal, and what was admitted beside them is on the disk", async () => {
    const url = await newDatabase();
    await using ledger = await open(url, { concurrencyPerAccount: 1 });
    const { ids, secrets } = await makeAccounts(ledger, [plenty, 5n, plenty, plenty, plenty]);
    const [rich = "", poor = "", disabled = "", revoked = "", last = ""] = secrets;
    const orders = await ordersOf(ledger, [rich, rich, poor, disabled, revoked, last]);
    await ledger.setAccountStatus(ids[2] ?? "", "disabled");
    await ledger.revokeKey((await ledger.listKeys(ids[3] ?? ""))[0]?.id ?? "");
    expect(await outcomesOf(orders.map((order) => ledger.admit(order)))).toEqual([
      "done",
      "too_many_concurrent",
      "insufficient_credit",
      "account_disabled",
      "authentication",
      "done",
    ]);
    // A refusal alone need not be synced; beside what was admitted it must not keep that from being so.
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query("begin");
    const arrays = orders.slice(0, 2).map(({ caller }) => caller);
    await client.query(
      `select verdict from tributary.admit_each($1, $2, array['req_x', 'req_y'], array[null, null]::bigint[],
         array[null, null]::text[], array[false, false], array[1, 1], array[1, 1], array[true, true],
         array['messages', 'messages'], array[true, true], 9, 1, 1, 2, 60000, null, null, null)`,
      [arrays.map(({ accountId }) => accountId), arrays.map(({ keyId }) => keyId)],
    );
    const { rows } = await client.query("show synchronous_commit");
    await client.end();
    expect(rows).toEqual([{ synchronous_commit: "on" }]);
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });

  test("one that fails the statement fails alone, in admissions and in settlements", async () => {
    const url = await newDatabase();
    await using ledger = await open(url);
    const { secrets } = await makeAccounts(ledger, many(3));
    await execute(
      url,
      `create function poison() returns trigger language plpgsql as $body$
       begin
         if new.request_id like '%poison%' then raise exception 'poison'; end if;
         return new;
       end
       $body$;
       create trigger poison before insert on tributary.entry for each row execute function poison()`,
    );
    const [one, two = orderOf(await ledger.authorize(secrets[1] ?? "", true)), three] =
      await ordersOf(ledger, secrets);
    const beside = orderOf(two.caller);
    const bad = orderOf(two.caller, { requestId: "req_poison" });
    const orders = [one, two, bad, beside, three].filter((order) => order !== undefined);
    const expected = ["done", "done", "internal", "done", "done"];
    expect(await outcomesOf(orders.map((order) => ledger.admit(order)))).toEqual(expected);
    await execute(url, "alter table tributary.entry disable trigger poison");
    await ledger.admit(bad);
    await execute(url, "alter table tributary.entry enable trigger poison");
    const settled = orders.map((order) => ledger.settle(settlementOf(order)));
    expect(await outcomesOf(settled)).toEqual(expected);
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });

  test("an account that another program keeps locked holds up no other", async () => {
    const url = await newDatabase();
    await using ledger = await open(url);
    const { ids, secrets } = await makeAccounts(ledger, many(4));
    const orders = await ordersOf(ledger, secrets);
    const other = new Client({ connectionString: url });
    await other.connect();
    await other.query("begin");
    await other.query("select 1 from tributary.account where id = $1 for update", [ids[1]]);
    const answered: number[] = [];
    const steps = orders.map(async (order, at) => {
      await ledger.admit(order);
      answered.push(at);
    });
    await Promise.all(steps.filter((_, at) => at !== 1));
    expect(answered.toSorted((one, other) => one - other)).toEqual([0, 2, 3]);
    await other.query("rollback");
    await other.end();
    await steps[1];
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });

  test("a lost answer is asked for again by each, and nothing happens twice", async () => {
    const name = /@\/(\w+)/.exec(await newDatabase())?.[1] ?? "";
    await using proxy = await openProxy(server);
    await using ledger = await openPostgresLedger(
      { ...defaultSettings, url: proxy.url(name), connections: 1 },
      {},
    );
    const { ids, secrets } = await makeAccounts(ledger, many(3));
    const orders = [
      ...(await ordersOf(ledger, secrets)),
      ...(await ordersOf(ledger, secrets.toReversed())),
    ];
    proxy.loseNextAnswer();
    expect(new Set(await outcomesOf(orders.map((order) => ledger.admit(order))))).toEqual(
      new Set(["done"]),
    );
    const held = async (): Promise<readonly bigint[]> =>
      Promise.all(ids.map(async (id) => (await ledger.showAccount(id)).heldNanos));
    expect(await held()).toEqual([2_800_000n, 2_800_000n, 2_800_000n]);
    proxy.loseNextAnswer();
    const settled = await Promise.all(orders.map((order) => ledger.settle(settlementOf(order))));
    expect(new Set(settled.map(({ chargedNanos }) => chargedNanos))).toEqual(new Set([580_000n]));
    expect(await held()).toEqual([0n, 0n, 0n]);
    expect(await ledger.verify([])).toMatchObject({ ok: true, entries: 3 + 2 * 6 });
  });

  test("requests of one account are chained in their order, in one transaction", async () => {
    const url = await newDatabase();
    await using ledger = await open(url, { concurrencyPerAccount: 50 });
    // Ten reservations of 1,400,000 fit.
    const { ids, secrets } = await makeAccounts(ledger, [14_000_000n]);
    const orders = await ordersOf(
      ledger,
      Array.from({ length: 12 }, () => secrets[0] ?? ""),
    );
    expect(await outcomesOf(orders.map((order) => ledger.admit(order)))).toEqual([
      ...Array.from({ length: 10 }, () => "done"),
      "insufficient_credit",
      "insufficient_credit",
    ]);
    const transactions = await execute(
      url,
      "select count(distinct xmin::text) as count from tributary.entry where kind = 'reserve'",
    );
    expect(transactions).toEqual([{ count: "1" }]);
    const chained = await execute(
      url,
      "select request_id from tributary.entry where kind = 'reserve' order by sequence",
    );
    expect(chained.map((row) => row["request_id"])).toEqual(
      orders.slice(0, 10).map(({ requestId }) => requestId),
    );
    await Promise.all(orders.map((order) => ledger.settle(settlementOf(order))));
    expect(await ledger.showAccount(ids[0] ?? "")).toMatchObject({
      balanceNanos: 14_000_000n - 10n * 580_000n,
      heldNanos: 0n,
    });
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });

  test("replicas that work on the same accounts, and renew meanwhile, never wait for each other in a circle", async () => {
    const url = await newDatabase();
    await using one = await open(url, { concurrencyPerAccount: 2 });
    await using other = await open(url, { concurrencyPerAccount: 2 });
    const { secrets } = await makeAccounts(one, many(6));
    await Promise.all(
      [one, other].flatMap((ledger, replica) =>
        Array.from({ length: 12 }, async (_, at) => {
          // One replica begins at the first account, the other at the last.
          const turned = replica === 0 ? secrets : secrets.toReversed();
          for (let round = 0; round < 6; round += 1) {
            const secret = turned[(at + round) % turned.length] ?? "";
            const order = orderOf(await ledger.authorize(secret, true));
            if ((await ledger.admit(order).then(() => "done", codeOf)) !== "done") continue;
            await Promise.all([
              ledger.renew([order.requestId]),
              ledger.settle(settlementOf(order)),
            ]);
          }
        }),
      ),
    );
    const [row] = await execute(
      url,
      "select deadlocks, (select count(*) from tributary.reservation where state = 'open') as open from pg_stat_database where datname = current_database()",
    );
    expect(row).toEqual({ deadlocks: "0", open: "0" });
    expect(await one.verify([])).toMatchObject({ ok: true });
  });

  test("a request that stands in a statement twice is resolved by neither", async () => {
    const url = await newDatabase();
    await using ledger = await open(url);
    const { ids, secrets } = await makeAccounts(ledger, many(1));
    const [order, other] = await ordersOf(ledger, [secrets[0] ?? "", secrets[0] ?? ""]);
    if (order === undefined || other === undefined) throw new Error("no order");
    // There is enough held and running for two.
    await ledger.admit(order);
    await ledger.admit(other);
    const twice = `select * from tributary.settle_each(array['${ids[0] ?? ""}', '${ids[0] ?? ""}'],
      array['${order.requestId}', '${order.requestId}'], array['completed', 'completed'], array[1, 1], array[0, 0],
      array[1, 1], array[0, 0], array[1, 1], array[1, 1], null, null)`;
    await expect(execute(url, twice)).rejects.toThrow(/stands among them twice/);
    expect((await ledger.showAccount(ids[0] ?? "")).heldNanos).toBe(2_800_000n);
  });
});
