import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../src/ledger/ledger.ts";
import { limits } from "../../src/limits.ts";
import { mayPass, storeFault } from "../../src/ledger/postgres/fault.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import type { StartWait } from "../../src/ledger/postgres/await-server.ts";
import { postgresMigrations } from "../../src/ledger/migrations/postgres/migrations.ts";
import type { MigrationReport } from "../../src/ledger/postgres/migrate.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { execute, postgresTests, startPostgres, type PostgresServer } from "./postgres-server.ts";
import { checkpointMisdatedEntries } from "./misdated-entries.ts";
import { openProxy } from "./postgres-proxy.ts";
import { codeOf, defaultSettings } from "./support.ts";
import { orderOf, settlementOf } from "./orders.ts";

// What goes wrong between a replica and its server: it is away, it restarts, it is locked, or an answer is lost on the
// way after the commit.

let server: PostgresServer;
let databases = 0;

function newDatabase(): Promise<string> {
  databases += 1;
  return server.createDatabase(`ledger_${String(databases)}`);
}

interface OpenChanges {
  readonly busyMs?: number;
  readonly connections?: number;
  readonly now?: () => number;
  readonly onRetry?: () => void;
  readonly onMigrated?: (report: MigrationReport) => void;
  readonly startWait?: StartWait;
}

function open(url: string, changes: OpenChanges = {}): Promise<StoreLedger> {
  const { now, onMigrated, onRetry, startWait, ...rest } = changes;
  const { concurrencyPerAccount, leaseMs, prices, requestsPerMinute } = defaultSettings;
  return openPostgresLedger(
    { concurrencyPerAccount, leaseMs, prices, requestsPerMinute, url, ...rest },
    {
      ...(now === undefined ? {} : { now }),
      ...(onMigrated === undefined ? {} : { onMigrated }),
      ...(startWait === undefined ? {} : { startWait }),
      ...(onRetry === undefined ? {} : { telemetry: { ledgerRetry: onRetry } }),
    },
  );
}

async function firstCaller(ledger: StoreLedger): Promise<Caller & { readonly secret: string }> {
  const first = await ledger.ensureFirstAccount(10n ** 12n);
  if (first === null) throw new Error("the ledger was not empty");
  return { ...(await ledger.authorize(first.secret, true)), secret: first.secret };
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

/** Keeps an account's row, as another program would, until it is disposed. */
async function lockAccount(url: string, accountId: string): Promise<AsyncDisposable> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  await client.query("select 1 from tributary.account where id = $1 for update", [accountId]);
  return { [Symbol.asyncDispose]: () => client.end() };
}

describe.skipIf(!postgresTests)("PostgreSQL that fails", () => {
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("an answer that is lost after the commit is asked for again, and nothing happens twice", async () => {
    const database = `ledger_${String((databases += 1))}`;
    await server.createDatabase(database);
    await using proxy = await openProxy(server);
    let retries = 0;
    await using ledger = await open(proxy.url(database), {
      connections: 1,
      onRetry: () => (retries += 1),
    });
    const caller = await firstCaller(ledger);
    const asked = orderOf(caller, { requestId: "req_1" });
    proxy.loseNextAnswer();
    expect((await ledger.admit(asked)).reservedNanos).toBe(1_400_000n);
    expect((await ledger.showAccount(caller.accountId)).heldNanos).toBe(1_400_000n);
    proxy.loseNextAnswer();
    expect(await ledger.settle(settlementOf(asked))).toEqual({
      chargedNanos: 580_000n,
      applied: false,
    });
    expect(retries).toBe(1);
    expect(await ledger.showAccount(caller.accountId)).toMatchObject({
      balanceNanos: 10n ** 12n - 580_000n,
      heldNanos: 0n,
    });
  });

  test("a refusal that is lost stays one, and its ticket is given back once", async () => {
    const database = `ledger_${String((databases += 1))}`;
    const url = await server.createDatabase(database);
    await using proxy = await openProxy(server);
    await using ledger = await open(proxy.url(database), { connections: 1 });
    await using other = await open(url);
    const caller = await firstCaller(ledger);
    for (const n of [1, 2, 3, 4])
      await ledger.admit(orderOf(caller, { requestId: `req_${String(n)}` }));
    const fifth = await ledger.authorize(caller.secret, true);
    // By the time it is asked again there would be room: it would run without a ticket.
    proxy.loseNextAnswer(() => other.settle(settlementOf(orderOf(caller, { requestId: "req_1" }))));
    expect(await refusal(ledger.admit(orderOf(fifth, { requestId: "req_5" })))).toBe(
      "too_many_concurrent",
    );
    expect((await other.showAccount(caller.accountId)).heldNanos).toBe(3n * 1_400_000n);
    expect((await ledger.authorize(caller.secret, false)).rate.remaining).toBe(599);
  });

  test.each([
    ["a refusal that is lost, and asked for again while its ticket would count, stays one", -1],
    ["an admission that is asked for again when its ticket would count no more is decided anew", 0],
  ])("%s", async (_what, beyondMs) => {
    const database = `ledger_${String((databases += 1))}`;
    await using proxy = await openProxy(server);
    let nowMs = 1_700_000_000_000;
    const now = (): number => nowMs;
    const url = await server.createDatabase(database);
    await using ledger = await open(proxy.url(database), { connections: 1, now });
    await using other = await open(url, { now });
    const caller = await firstCaller(ledger);
    for (const n of [1, 2, 3, 4])
      await ledger.admit(orderOf(caller, { requestId: `req_${String(n)}` }));
    const fifth = await ledger.authorize(caller.secret, true);
    proxy.loseNextAnswer(async () => {
      nowMs += limits.rateWindowMs + beyondMs;
      await other.settle(settlementOf(orderOf(caller, { requestId: "req_1" })));
    });
    expect(await refusal(ledger.admit(orderOf(fifth, { requestId: "req_5" })))).toBe(
      beyondMs < 0 ? "too_many_concurrent" : "done",
    );
  });

  test("while the server is away callers are told so, and a settlement waits for it", async () => {
    const url = await newDatabase();
    let retries = 0;
    await using ledger = await open(url, { onRetry: () => (retries += 1) });
    const caller = await firstCaller(ledger);
    const asked = orderOf(caller, { requestId: "req_1" });
    await ledger.admit(asked);
    await server.stop("crash");
    expect(await refusal(ledger.authorize(caller.secret, true))).toBe("overloaded");
    expect(await refusal(ledger.admit(orderOf(caller, { requestId: "req_2" })))).toBe("overloaded");
    expect(await refusal(ledger.check())).toBe("overloaded");
    const settling = ledger.settle(settlementOf(asked));
    await server.start();
    expect(await settling).toEqual({ chargedNanos: 580_000n, applied: true });
    expect(retries).toBeGreaterThan(0);
    // Tickets are not kept through a crash; all else is.
    expect((await ledger.authorize(caller.secret, true)).rate.remaining).toBe(599);
    expect(await refusal(ledger.admit(orderOf(caller, { requestId: "req_3" })))).toBe("done");
  });

  describe("a start that waits", () => {
    const away = "postgres://me@127.0.0.1:1/ledger";
    const refused = "PostgreSQL: connect ECONNREFUSED 127.0.0.1:1";

    test("waits for a server that comes up later", async () => {
      const url = await newDatabase();
      await server.stop("in-order");
      const reasons: string[] = [];
      const waiting = Promise.withResolvers<void>();
      const opening = open(url, {
        startWait: {
          ms: 15_000,
          onWaiting({ reason }) {
            reasons.push(reason);
            waiting.resolve();
          },
        },
      });
      await waiting.promise;
      await server.start();
      await using ledger = await opening;
      await ledger.check();
      expect(reasons[0]).toMatch(/^PostgreSQL: connect E/);
    });

    test("says once why it waits, and fails in the same words when it has waited enough", async () => {
      const told: number[] = [];
      const beganMs = performance.now();
      const opening = open(away, {
        startWait: {
          ms: 700,
          onWaiting({ leftMs, reason }) {
            expect(reason).toBe(refused);
            told.push(leftMs);
          },
        },
      });
      await expect(opening).rejects.toThrow(refused);
      expect(performance.now() - beganMs).toBeGreaterThanOrEqual(700);
      expect(told).toHaveLength(1);
      expect(told[0]).toBeLessThanOrEqual(700);
    });

    test("ends when it is told to", async () => {
      const stop = new AbortController();
      const startWait = { ms: 60_000, signal: stop.signal, onWaiting: () => stop.abort() };
      await expect(open(away, { startWait })).rejects.toMatchObject({ name: "AbortError" });
    });

    test("does not wait for what time does not mend", async () => {
      const onWaiting = (): void => expect.unreachable("it waited");
      const startWait = { ms: 60_000, onWaiting };
      await expect(open(server.url("nowhere"), { startWait })).rejects.toThrow(/"nowhere"/);
      const noTls = `${server.url("postgres")}&sslmode=verify-full`;
      await expect(open(noTls, { startWait })).rejects.toThrow(/cannot be opened/);
    });
  });

  test("a host with several addresses is refused with the reason of each", () => {
    const errors = ["connect ECONNREFUSED ::1:5432", "connect ECONNREFUSED 127.0.0.1:5432"].map(
      (message) => new Error(message),
    );
    const both = Object.assign(new AggregateError(errors), { code: "ECONNREFUSED" });
    expect(storeFault(both)).toMatchObject({
      kind: "unavailable",
      message: "PostgreSQL: connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432",
    });
    expect(mayPass(both)).toBe(true);
    const certificate = Object.assign(new Error("self-signed certificate"), {
      code: "SELF_SIGNED_CERT_IN_CHAIN",
    });
    expect(mayPass(certificate)).toBe(false);
  });

  test("a row that another program keeps locked makes callers wait no longer than the limit", async () => {
    const url = await newDatabase();
    await using ledger = await open(url);
    const caller = await firstCaller(ledger);
    {
      // The only one whose limits a busy machine may meet, too: it is to be refused.
      await using impatient = await open(url, { busyMs: 150, connections: 2 });
      await using _ = await lockAccount(url, caller.accountId);
      expect(await refusal(impatient.admit(orderOf(caller, { requestId: "req_1" })))).toBe(
        "overloaded",
      );
    }
    expect(await refusal(ledger.admit(orderOf(caller, { requestId: "req_1" })))).toBe("done");
  });

  test("an account that cannot be had holds up the expiry of no other", async () => {
    const url = await newDatabase();
    let now = 1_000_000;
    await using ledger = await open(url, { now: () => now });
    // Long enough for what is not locked, on a busy machine as well.
    await using impatient = await open(url, { busyMs: 1_500, connections: 2, now: () => now });
    const one = await firstCaller(ledger);
    now += 1;
    const other = await ledger.createAccount("other", 10n ** 12n);
    const { secret } = await ledger.createKey(other.id, "other");
    const held = async (): Promise<readonly bigint[]> =>
      (await ledger.listAccounts()).map(({ heldNanos }) => heldNanos);
    for (const locked of [0, 1]) {
      await ledger.admit(orderOf(one, { requestId: `req_1${String(locked)}` }));
      await ledger.admit(
        orderOf(await ledger.authorize(secret, false), { requestId: `req_2${String(locked)}` }),
      );
      now += 60_000;
      {
        await using _ = await lockAccount(url, locked === 0 ? one.accountId : other.id);
        expect(await refusal(impatient.expire())).toBe("overloaded");
        expect(await held()).toEqual(locked === 0 ? [1_400_000n, 0n] : [0n, 1_400_000n]);
      }
      expect(await ledger.expire()).toBe(1);
    }
  });

  test.each(["40001", "40P01"])(
    "what others get in the way of (%s) is done again, and given up after some tries",
    async (code) => {
      const url = await newDatabase();
      await using ledger = await open(url);
      const caller = await firstCaller(ledger);
      // As a server answers that keeps an account elsewhere: a sequence counts on through what is rolled back.
      await execute(
        url,
        `create sequence conflicts;
         create function conflict() returns trigger language plpgsql as $body$
         begin
           if nextval('conflicts') <= 3 then raise exception 'conflict' using errcode = '${code}'; end if;
           return new;
         end
         $body$;
         create trigger conflict before insert on tributary.entry for each row execute function conflict()`,
      );
      const asked = orderOf(caller, { requestId: "req_1" });
      expect(await refusal(ledger.admit(asked))).toBe("done");
      expect((await ledger.showAccount(caller.accountId)).heldNanos).toBe(1_400_000n);
      await execute(url, "select setval('conflicts', 1)");
      expect((await ledger.creditAccount(caller.accountId, 5n, null)).account.balanceNanos).toBe(
        10n ** 12n + 5n,
      );
      await execute(
        url,
        "select setval('conflicts', 1); alter sequence conflicts increment by -1 minvalue -100",
      );
      expect(await refusal(ledger.admit(orderOf(caller, { requestId: "req_2" })))).toBe(
        "overloaded",
      );
    },
  );

  test("of replicas that start at once one migrates, and one makes the first account", async () => {
    const url = await newDatabase();
    const reports: MigrationReport[] = [];
    const onMigrated = (report: MigrationReport): void => void reports.push(report);
    const all = await Promise.all(
      [1, 2, 3, 4].map(() => open(url, { onMigrated, connections: 2 })),
    );
    try {
      const names = postgresMigrations.map(({ name }) => name);
      expect(reports).toEqual([{ from: 0, to: names.length, names }]);
      const first = await Promise.all(all.map((ledger) => ledger.ensureFirstAccount(5n)));
      expect(first.filter((made) => made !== null)).toHaveLength(1);
      const keys = await Promise.all(all.map((ledger) => ledger.sealKeys()));
      expect(new Set(keys.map((list) => list.map(({ id }) => id).join(",")))).toHaveLength(1);
    } finally {
      await Promise.all(all.map((ledger) => ledger[Symbol.asyncDispose]()));
    }
  });

  test("a newer schema, a missing database and a missing server are refused with what to do", async () => {
    const url = await newDatabase();
    const ledger = await open(url);
    await ledger[Symbol.asyncDispose]();
    expect(codeOf(await ledger.check().catch((error: unknown) => error))).toBe("overloaded");
    await execute(url, "insert into tributary.migration (number, name) values (99, 'later')");
    await expect(open(url)).rejects.toThrow(/newer version of Tributary \(schema 99/);
    const known = postgresMigrations.length;
    await execute(
      url,
      `update tributary.migration set oldest = ${String(known + 1)} where number = 99`,
    );
    await expect(open(url)).rejects.toThrow(/newer version of Tributary \(schema 99/);
    // A newer version that only added to the schema lets this one go on beside it.
    await execute(
      url,
      `update tributary.migration set oldest = ${String(known)} where number = 99`,
    );
    await (await open(url))[Symbol.asyncDispose]();
    await expect(open(server.url("nowhere"))).rejects.toThrow(/cannot be opened.*"nowhere"/);
    const away = "postgres://me:MARKER@127.0.0.1:1/ledger";
    const error: unknown = await open(away, { busyMs: 1_000 }).catch((cause: unknown) => cause);
    expect(codeOf(error)).toBe("ledger_unusable");
    expect(String(error)).toContain("postgres://127.0.0.1:1/ledger");
    expect(String(error)).not.toContain("MARKER");
  });

  test("usage and migrations may take longer than a statement of a request", async () => {
    const url = await newDatabase();
    const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
      and application_name = 'tributary' and clock_timestamp() - query_start > interval '600 ms'`;
    const waitsLong = (): Promise<unknown> =>
      expect.poll(() => execute(url, waits)).toHaveLength(1);
    const other = new Client({ connectionString: url });
    other.on("error", () => {});
    await other.connect();
    // As another process that is at the same migration.
    await other.query(`select pg_advisory_lock(${String(0x5452_4942_0001)})`);
    const opening = open(url, { busyMs: 500 });
    await waitsLong();
    await other.query("select pg_advisory_unlock_all()");
    await using ledger = await opening;

    await other.query("begin; lock table tributary.account in access exclusive mode");
    const summing = ledger.sumUsage({
      accountId: null,
      keyId: null,
      format: null,
      sinceMs: 5,
      untilMs: null,
      by: ["day"],
      timezone: "UTC",
    });
    await waitsLong();
    await other.query("rollback");
    await other.end();
    expect(await summing).toEqual([]);
  });

  test("a checkpoint goes by the order of entries where their times cannot be true", async () => {
    let now = 0;
    await using ledger = await open(await newDatabase(), { now: () => now });
    await checkpointMisdatedEntries(ledger, (nowMs) => (now = nowMs));
  });

  test("a key that seals is added beside those that are there", async () => {
    await using ledger = await open(await newDatabase(), { now: () => 5_000 });
    const [first] = await ledger.sealKeys();
    const second = await ledger.rotateSealKey();
    expect(await ledger.sealKeys()).toEqual([first, second]);
    expect([first?.ageMs, second.ageMs, second.secret.length]).toEqual([0, 0, 32]);
  });

  test("the journal cannot be changed, also not by hand", async () => {
    const url = await newDatabase();
    await using ledger = await open(url);
    await firstCaller(ledger);
    for (const sql of [
      "update tributary.entry set balance_delta_nanos = 1",
      "delete from tributary.entry",
      "truncate tributary.entry",
      "update tributary.account set held_nanos = balance_nanos + 1",
    ])
      await expect(execute(url, sql)).rejects.toThrow(/never changed|violates check constraint/);
  });

  test("credit that moved is synced even when the server's setting would not", async () => {
    const url = await newDatabase();
    await execute(
      url,
      `alter database ${new URL(url.replace("@/", "@h/")).pathname.slice(1)} set synchronous_commit = off`,
    );
    await using ledger = await open(url);
    const caller = await firstCaller(ledger);
    const seen = await execute(
      url,
      `with locked as (select id from tributary.account where id = '${caller.accountId}' for no key update)
       select set_config('synchronous_commit', 'off', false) as before,
         (select written_sequence from tributary.move(locked.id, 'credit', 1, 0, 0, 'operator', null, null, 0)) as moved,
         current_setting('synchronous_commit') as after
       from locked`,
    );
    expect(seen).toEqual([{ before: "off", moved: "2", after: "on" }]);
  });
});
