import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";
import type { ArgumentOf, OperationName } from "../../src/ledger/store-operations.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import type { VerifyReport } from "../../src/ledger/verify-journal.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { defaultSettings, secretHash } from "./support.ts";

// The damages of verify.test.ts on PostgreSQL, each on a copy of one database. Of acct_ann: 1 credit, 2 reserve,
// 3 settle, 4 reserve, 5 expire, 6 reserve, which is open. Of acct_bob: 1 credit, 2 reserve, 3 settle.

const { synchronous: _, ...rules } = defaultSettings;
let server: PostgresDatabases;
let copies = 0;
let url = "";

describe.skipIf(!postgresTests)("verifying a ledger in PostgreSQL", () => {
  beforeAll(async () => {
    server = await openPostgresDatabases();
    await fill(await server.createDatabase("base"));
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("a sound one, whose chain the documented SQL makes again to the byte", async () => {
    await copy();
    const before = await hashes();
    await rechain("acct_ann");
    await rechain("acct_bob");
    expect(await hashes()).toEqual(before);
    const report = await verify();
    expect(report).toMatchObject({ ok: true, entries: 9, accounts: 2, problems: [] });
    expect((await verify(...report.heads)).ok).toBe(true);
  });

  test.each([
    {
      what: "amount",
      sql: "update tributary.entry set balance_delta_nanos = -1 where account_id = 'acct_ann' and sequence = 3",
      bad: "acct_ann:3 entry-changed",
    },
    {
      what: "order",
      sql: `update tributary.entry set sequence = 100 where account_id = 'acct_ann' and sequence = 3;
        update tributary.entry set sequence = 3 where account_id = 'acct_ann' and sequence = 4;
        update tributary.entry set sequence = 4 where account_id = 'acct_ann' and sequence = 100`,
      bad: "acct_ann:3 entry-changed",
    },
    {
      what: "missing middle",
      sql: "delete from tributary.entry where account_id = 'acct_ann' and sequence in (2, 3)",
      bad: "acct_ann:2 entry-missing",
    },
    {
      what: "missing tail",
      sql: "delete from tributary.entry where account_id = 'acct_ann' and sequence >= 5",
      bad: "acct_ann:5 entry-missing",
    },
    {
      what: "foreign account's entry",
      sql: `insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
          request_id, note, hash)
        select 'acct_bob', 4, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, request_id, note, hash
        from tributary.entry where account_id = 'acct_ann' and sequence = 3`,
      bad: "acct_bob:4 entry-changed",
    },
    {
      what: "balance row",
      sql: "update tributary.account set balance_nanos = balance_nanos + 1 where id = 'acct_bob'",
      bad: "acct_bob:null balance-differs",
    },
    {
      what: "held row",
      sql: "update tributary.account set held_nanos = held_nanos - 1 where id = 'acct_ann'",
      bad: "acct_ann:null held-differs",
    },
    {
      what: "receipt",
      sql: "update tributary.reservation set charged_nanos = 0 where request_id = 'req_a1'",
      bad: "acct_ann:3 receipt-differs",
    },
    {
      what: "receipt without entries",
      sql: `insert into tributary.reservation select (jsonb_populate_record(r, '{"request_id": "req_zz"}')).*
        from tributary.reservation r where request_id = 'req_b1'`,
      bad: "acct_bob:2 receipt-differs",
    },
  ])("names the first bad entry: $what", async ({ bad, sql }) => {
    await copy();
    await execute(url, sql);
    expect(firstBad(await verify())).toBe(bad);
  });

  test("names a forged entry with its own chain recomputed, by the receipts and by a kept head", async () => {
    await copy();
    const kept = (await verify()).heads;
    await execute(
      url,
      `update tributary.entry set balance_delta_nanos = 30000000 where account_id = 'acct_bob' and sequence = 1;
       update tributary.account set balance_nanos = balance_nanos + 10000000 where id = 'acct_bob'`,
    );
    await rechain("acct_bob");
    expect(firstBad(await verify())).toBe("acct_bob:3 receipt-differs");
    await execute(
      url,
      `update tributary.reservation r set head = e.hash from tributary.entry e
       where e.account_id = r.account_id and e.sequence = r.resolved_sequence and r.account_id = 'acct_bob'`,
    );
    expect((await verify()).ok).toBe(true);
    expect(firstBad(await verify(...kept))).toBe("acct_bob:3 head-differs");
  });

  test("names a duplicate settle that is chained and fits the row", async () => {
    await copy();
    await execute(
      url,
      `insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
         request_id, note, hash)
       select account_id, 4, at_ms, kind, balance_delta_nanos, 0, actor, request_id, note, hash
       from tributary.entry where account_id = 'acct_bob' and sequence = 3;
       update tributary.account set entries = 4, balance_nanos = balance_nanos - 90000 where id = 'acct_bob'`,
    );
    await rechain("acct_bob");
    expect(firstBad(await verify())).toBe("acct_bob:4 resolved-twice");
  });

  test("goes on from a checkpoint, and names one that was changed", async () => {
    await copy();
    {
      await using ledger = await openPostgresLedger({ ...rules, url }, {});
      expect(await ledger.checkpoint("acct_ann", 2_000)).toEqual({ removed: 4, misdated: 0 });
    }
    expect(await verify()).toMatchObject({ ok: true, entries: 6 });
    await execute(
      url,
      `update tributary.checkpoint set balance_nanos = balance_nanos + 1, credited_nanos = credited_nanos + 1;
       update tributary.account set balance_nanos = balance_nanos + 1 where id = 'acct_ann'`,
    );
    expect(firstBad(await verify())).toBe("acct_ann:4 checkpoint-differs");
  });
});

async function fill(base: string): Promise<void> {
  let nowMs = 1_000;
  await using store = await connectPostgresStore({ ...rules, url: base }, { now: () => nowMs });
  const call = <Name extends OperationName>(name: Name, argument: ArgumentOf<Name>) =>
    store.call(name, argument);
  for (const name of ["ann", "bob"] as const) {
    const id: AccountId = `acct_${name}`;
    await call("createAccount", { id, name, creditNanos: 20_000_000n });
    const key = { id: `key_${name}` as const, accountId: id, name, secretHash: secretHash(name) };
    await call("createKey", key);
  }
  const admit = async (name: "ann" | "bob", requestId: RequestId): Promise<void> => {
    const accountId: AccountId = `acct_${name}`;
    const keyId: KeyId = `key_${name}`;
    const key = {
      accountId,
      keyId,
      secretHash: secretHash(name),
      ticketId: null,
      needsCredit: false,
    };
    await call("admit", {
      requestId,
      caller: await call("authorize", key),
      inputBound: 1_000,
      outputTokensRequested: 100,
      outputTokensFitting: null,
      format: "messages",
      streamed: true,
      label: null,
    });
  };
  const settle = (accountId: AccountId, requestId: RequestId): Promise<unknown> =>
    call("settle", {
      requestId,
      accountId,
      outcome: "completed",
      usage: { inputTokens: 10, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
      firstOutputMs: 1,
      totalMs: 5,
    });
  await admit("ann", "req_a1");
  await settle("acct_ann", "req_a1");
  await admit("bob", "req_b1");
  await settle("acct_bob", "req_b1");
  await admit("ann", "req_a2");
  nowMs = 100_000;
  await call("expire", null);
  await admit("ann", "req_a3");
}

/** A copy in which no trigger is in the way. */
async function copy(): Promise<void> {
  copies += 1;
  const name = `copy_${String(copies)}`;
  url = await server.createDatabase(name, "base");
  await execute(url, "alter table tributary.entry disable trigger all");
}

async function verify(...against: readonly string[]): Promise<VerifyReport> {
  await using ledger = await openPostgresLedger({ ...rules, url }, {});
  return await ledger.verify(against, true);
}

function firstBad(report: VerifyReport): string {
  expect(report.ok).toBe(false);
  const [problem] = report.problems;
  return `${problem?.account ?? ""}:${String(problem?.sequence)} ${problem?.code ?? ""}`;
}

function hashes(): Promise<unknown> {
  return execute(
    url,
    "select account_id, sequence, encode(hash, 'hex') from tributary.entry order by 1, 2",
  );
}

/** The chain as docs/ledger.md says it in SQL. */
async function rechain(accountId: string): Promise<void> {
  await execute(
    url,
    `do $$
     declare
       previous bytea := decode(repeat('00', 32), 'hex');
       e record;
     begin
       for e in select * from tributary.entry where account_id = '${accountId}' order by sequence loop
         previous := sha256(previous || convert_to(concat_ws(E'\\n', 'tributary-entry-1', e.account_id, e.sequence, e.at_ms,
           e.kind, e.balance_delta_nanos, e.held_delta_nanos, e.actor, coalesce(e.request_id, ''),
           coalesce('=' || e.note, '')), 'UTF8'));
         update tributary.entry set hash = previous where account_id = e.account_id and sequence = e.sequence;
       end loop;
       update tributary.account set head = previous where id = '${accountId}';
     end $$`,
  );
}
