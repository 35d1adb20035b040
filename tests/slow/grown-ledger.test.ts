import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { expect, it } from "vitest";
import { chainHash, checkpointNote } from "../../src/ledger/journal.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { defaultSettings } from "../ledger/support.ts";
import { isOldestThere, runOldest } from "./oldest-version.ts";

// The oldest version that this one migrates leaves a ledger of a million receipts.

const receipts = 1_000_000;
const accounts = 40;
const chargedNanos = 900_000n;
const creditedNanos = 10n ** 16n;
/** What a start may take, on a machine that does other things too. */
const migratedWithinMs = 60_000;
/** What a reader may wait meanwhile: after so long a request gives up. */
const readWithinMs = 5_000;

/** Runs a statement with parameters `$1`, `$2` on tables `tributary.NAME`. */
type Run = (sql: string, ...values: readonly (string | bigint | Uint8Array)[]) => Promise<unknown>;

/** Settled receipts, whose entries a checkpoint of each account stands for. */
async function grow(run: Run): Promise<void> {
  const each = receipts / accounts;
  for (let number = 0; number < accounts; number += 1) {
    const id = `acct_${String(number)}` as const;
    const sequence = 2 * each + 1;
    const hash = new Uint8Array(32).fill(number + 1);
    const balanceNanos = creditedNanos - BigInt(each) * chargedNanos;
    const checkpoint = { sequence, hash, balanceNanos, heldNanos: 0n, creditedNanos };
    const note = checkpointNote(checkpoint);
    const last = { accountId: id, sequence: sequence + 1, atMs: 9, kind: "checkpoint" } as const;
    const nothing = { balanceDeltaNanos: 0n, heldDeltaNanos: 0n, requestId: null } as const;
    const head = chainHash(hash, { ...last, ...nothing, actor: "operator", note });
    await run(
      `insert into tributary.account (id, name, status, balance_nanos, held_nanos, running, entries, head, created_at_ms)
       values ($1, 'grown', 'active', $2, 0, 0, $3, $4, 1)`,
      id,
      balanceNanos,
      BigInt(last.sequence),
      head,
    );
    await run(
      `insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, note, hash)
       values ($1, $2, 9, 'checkpoint', 0, 0, 'operator', $3, $4)`,
      id,
      BigInt(last.sequence),
      note,
      head,
    );
    await run(
      `insert into tributary.checkpoint (account_id, sequence, hash, balance_nanos, held_nanos, credited_nanos, at_ms)
       values ($1, $2, $3, $4, 0, $5, 9)`,
      id,
      BigInt(sequence),
      hash,
      balanceNanos,
      creditedNanos,
    );
  }
  const day = 86_400_000;
  await run(
    `insert into tributary.reservation (account_id, request_id, key_id, state, format, streamed, input_bound, allowance,
       input_nanos_per_million, output_nanos_per_million, reserved_nanos, charged_nanos, outcome, input_tokens,
       cached_input_tokens, output_tokens, reasoning_tokens, admitted_at_ms, lease_until_ms, resolved_at_ms,
       first_output_ms, total_ms, reserved_sequence, resolved_sequence, head)
     with recursive series(n) as (
       select cast(0 as bigint) union all select n + 1 from series where n < ${String(receipts - 1)}
     )
     select 'acct_' || (n % ${String(accounts)}), 'req_' || (10000000 + n), 'key_' || (n % ${String(accounts)}), 'settled', 'messages',
       n % 2 = 0, 1000, 100, 1000000000, 4000000000, 1400000, ${String(chargedNanos)}, 'completed', 500, 100, 100, 0,
       n * ${String((365 * day) / receipts)}, 0, n * ${String((365 * day) / receipts)} + 900, 50, 900,
       2 * (n / ${String(accounts)}) + 2, 2 * (n / ${String(accounts)}) + 3, $1
     from series`,
    new Uint8Array(32).fill(7),
  );
}

async function openTimed(open: () => Promise<StoreLedger>): Promise<StoreLedger> {
  const startedMs = performance.now();
  const ledger = await open();
  const tookMs = performance.now() - startedMs;
  process.stdout.write(
    `migrated ${String(receipts)} receipts in ${(tookMs / 1_000).toFixed(1)} s\n`,
  );
  expect(tookMs).toBeLessThan(migratedWithinMs);
  return ledger;
}

async function ensureWhole(ledger: StoreLedger): Promise<void> {
  const report = await ledger.verify([]);
  expect(report).toMatchObject({ problems: [], accounts: accounts + 1 });
  const every = {
    accountId: null,
    sinceMs: null,
    untilMs: null,
    keyId: null,
    format: null,
    timezone: "UTC",
    by: ["format"],
  } as const;
  const sums = await ledger.sumUsage(every);
  expect(sums.reduce((total, sum) => total + sum.sums.requests, 0)).toBe(receipts);
  expect(sums.reduce((total, sum) => total + sum.sums.chargedNanos, 0n)).toBe(
    BigInt(receipts) * chargedNanos,
  );
}

it.runIf(isOldestThere)("a grown ledger of the oldest version is migrated, on SQLite", async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-grown-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  await runOldest({ TRIBUTARY_DATA_DIR: folder }, "account", "create", "old", "--credit", "1");
  const path = join(folder, "ledger.sqlite");
  {
    using database = new DatabaseSync(path);
    database.exec("pragma synchronous = off; pragma cache_size = -262144; begin immediate");
    await grow((sql, ...values) => {
      const text = sql.replaceAll("tributary.", "").replaceAll(/\$(\d+)/gu, "?$1");
      return Promise.resolve(database.prepare(text).run(...values));
    });
    database.exec("commit; pragma wal_checkpoint(truncate)");
  }
  const ledger = opened.use(
    await openTimed(() => openSqliteLedger({ ...defaultSettings, path }, { now: Date.now })),
  );
  await ensureWhole(ledger);
});

it.runIf(isOldestThere && postgresTests)("and on PostgreSQL, where its readers go on", async () => {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await startPostgres());
  const url = await server.createDatabase("grown");
  await runOldest({ TRIBUTARY_DATABASE_URL: url }, "account", "create", "old", "--credit", "1");
  const connect = async (): Promise<Client> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    opened.defer(() => client.end());
    return client;
  };
  const writer = await connect();
  await grow((sql, ...values) =>
    writer.query(
      sql,
      values.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value)),
    ),
  );
  await writer.query("analyze");
  const reader = await connect();
  const migrated = new AbortController();
  let longestMs = 0;
  let reads = 0;
  const readers = (async () => {
    while (!migrated.signal.aborted) {
      const id = `req_${String(10_000_000 + ((reads * 7919) % receipts))}`;
      const startedMs = performance.now();
      await reader.query(
        `select charged_nanos, balance_nanos, (select count(*) from tributary.api_key) as keys
           from tributary.reservation join tributary.account on account.id = account_id where request_id = $1`,
        [id],
      );
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      reads += 1;
    }
  })();
  const ledger = opened.use(
    await openTimed(() => openPostgresLedger({ ...defaultSettings, url }, {})),
  );
  migrated.abort();
  await readers;
  process.stdout.write(
    `${String(reads)} reads meanwhile, the longest ${longestMs.toFixed(0)} ms\n`,
  );
  expect(longestMs).toBeLessThan(readWithinMs);
  await ensureWhole(ledger);
});
