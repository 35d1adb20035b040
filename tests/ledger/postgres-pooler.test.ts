import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPooling } from "../../src/ledger/postgres/pooler.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { pgbouncer, startPgbouncer, type Pgbouncer } from "./pgbouncer.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { defaultSettings } from "./support.ts";

let server: PostgresDatabases;
let pooler: Record<"session" | "transaction", Pgbouncer>;
let databases = 0;

const runs = postgresTests && pgbouncer !== null;

beforeAll(async () => {
  if (!runs) return;
  server = await openPostgresDatabases();
  pooler = {
    session: await startPgbouncer(server, "session"),
    transaction: await startPgbouncer(server, "transaction"),
  };
});
afterAll(async () => {
  if (!runs) return;
  await pooler.session[Symbol.asyncDispose]();
  await pooler.transaction[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

function newDatabase(): Promise<string> {
  databases += 1;
  return server.createDatabase(`pooled_${String(databases)}`);
}

describe.skipIf(!runs)("a pooler in front of PostgreSQL", () => {
  test("is told from none, and its modes from each other", async () => {
    const url = await newDatabase();
    expect(await findPooling({ url })).toBe("none");
    expect(await findPooling({ url: pooler.session.through(url) })).toBe("session");
    expect(await findPooling({ url: pooler.transaction.through(url) })).toBe("transaction");
  });

  test("in transaction mode serves many requests at once, and is noticed at the start", async () => {
    const url = await newDatabase();
    let noticed = 0;
    await using ledger = await openPostgresLedger(
      { ...defaultSettings, url: pooler.transaction.through(url), connections: 5 },
      { serves: true, onPooled: () => void (noticed += 1) },
    );
    expect(noticed).toBe(1);
    const first = await ledger.ensureFirstAccount(10n ** 12n);
    const secret = first?.secret ?? "";
    for (let round = 0; round < 5; round += 1)
      await Promise.all(
        Array.from({ length: 4 }, async (_, at) => {
          const caller = await ledger.authorize(secret, true);
          const order = orderOf(caller, {
            requestId: `req_${String(round)}x${String(at)}`,
          });
          await ledger.admit(order);
          await ledger.renew([order.requestId]);
          await ledger.settle(settlementOf(order));
        }),
      );
    expect((await ledger.verify([])).ok).toBe(true);
    expect(await ledger.listAccounts()).toHaveLength(1);
    // Nothing tells whether a process lives: its leases alone count.
    const caller = await ledger.authorize(secret, true);
    await ledger.admit(orderOf(caller, { requestId: "req_open" }));
    expect(await ledger.giveBackDead()).toEqual({ count: 0, known: true, againInMs: null });
    expect(
      await execute(url, "select owner from tributary.reservation where request_id = 'req_open'"),
    ).toEqual([{ owner: null }]);
    expect(await execute(url, "select id from tributary.process")).toEqual([]);
  });

  test("in session mode is as none", async () => {
    const url = await newDatabase();
    await using store = await connectPostgresStore(
      { ...defaultSettings, url: pooler.session.through(url) },
      { serves: true },
    );
    expect((await store.call("giveBackDead", null)).count).toBe(0);
    expect(await execute(url, "select missed_ms from tributary.process")).toEqual([
      { missed_ms: null },
    ]);
  });
});
