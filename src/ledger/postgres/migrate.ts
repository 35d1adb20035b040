import { limits } from "../../limits.ts";
import { newerSchema, oldestReader } from "../migrations/oldest-reader.ts";
import { postgresMigrations } from "../migrations/postgres/migrations.ts";
import { OperatorError } from "../operator-error.ts";
import { numberOf, numberOrNullOf, textOf } from "../row.ts";
import type { Database, Query } from "./database.ts";
import { isLockTimeout } from "./fault.ts";
import { functions } from "./functions.ts";

/** What a start changed in the schema. */
export interface MigrationReport {
  /** Number of the schema before; 0: there was none. */
  readonly from: number;
  readonly to: number;
  readonly names: readonly string[];
}

// A number that other programs on the same server are unlikely to lock: "TRIB" and a count.
const migrationLock = 0x5452_4942_0001n;

const serverVersion = {
  name: "server-version",
  text: "select current_setting('server_version_num')::bigint as number, current_setting('server_version') as text",
};
const oldestServer = 130_000;

/**
 * Brings the schema up to date; null when it was. Of several processes that start at once one does it, the others wait.
 * `creates` false: where there is no schema none is made.
 */
export async function migrate(
  database: Database,
  { creates, name }: { readonly name: string; readonly creates: boolean },
): Promise<MigrationReport | null> {
  const [server] = await database.query(serverVersion);
  if (server === undefined || numberOf(server, "number") < oldestServer)
    throw new OperatorError(
      "ledger_unusable",
      `The server of ${name} is PostgreSQL ${server === undefined ? "of no version" : textOf(server, "text")}; the ledger needs 13 or newer. Name another one in TRIBUTARY_DATABASE_URL.`,
    );
  const there = await ensureKnown(database.query, name);
  if (there >= postgresMigrations.length) return null;
  if (there === 0 && !creates)
    throw new OperatorError(
      "not_found",
      `The database holds no ledger (${name}). The first start of the service makes it there; to work on another one, name it in TRIBUTARY_DATABASE_URL, or go to the folder with the service's .env.`,
    );
  return database.transaction(async (query) => {
    // Waiting for another process's migration, and making an index over a grown table, take longer than a request may.
    await query(statement("lift-limits", liftTimeLimits));
    const lock = statement("lock", "select pg_advisory_xact_lock($1)");
    await query({ ...lock, untimed: true }, migrationLock);
    // Read again under the lock: another process may have migrated meanwhile.
    const from = await ensureKnown(query, name);
    if (from >= postgresMigrations.length) return null;
    if (from === 0) await query(statement("", createSchema));
    else await lockTables(query);
    const missing = postgresMigrations.slice(from);
    for (const [index, migration] of missing.entries()) {
      if (migration.sql !== null) await query({ ...statement("", migration.sql), untimed: true });
      await query(
        statement("record", "insert into tributary.migration (number, name) values ($1, $2)"),
        from + index + 1,
        migration.name,
      );
    }
    await query(
      statement("record-oldest", "update tributary.migration set oldest = $2 where number = $1"),
      postgresMigrations.length,
      oldestReader(postgresMigrations),
    );
    await query(statement("", functions));
    return { from, to: postgresMigrations.length, names: missing.map((one) => one.name) };
  });
}

const liftTimeLimits =
  "select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '60000', true)";

/**
 * Locks all at once what the steps change, and lets go what it has got where one lock is not free: a request that holds one
 * table and wants another would otherwise wait for a step that wants the first, and the server would end one of both.
 */
async function lockTables(query: Query): Promise<void> {
  const { migrationLockMs, migrationLockTries } = limits;
  await query(setLockTimeout, `${String(migrationLockMs)}ms`);
  for (let tries = 1; ; tries += 1) {
    await query(statement("", "savepoint unlocked"));
    try {
      await query(statement("", lockSteps));
      break;
    } catch (error) {
      if (!isLockTimeout(error) || tries >= migrationLockTries) throw error;
      await query(statement("", "rollback to savepoint unlocked"));
      await new Promise((resolve) => setTimeout(resolve, migrationLockMs * Math.random()));
    }
  }
  await query(setLockTimeout, "0");
}

const setLockTimeout = {
  name: "migrate-lock-timeout",
  text: "select set_config('lock_timeout', $1, true)",
};
// Every table that the first step made and a later one changes.
const lockSteps =
  "lock table tributary.account, tributary.api_key, tributary.reservation, tributary.entry, tributary.checkpoint";

const createSchema = `
create schema if not exists tributary;
create table tributary.migration (
  number integer primary key,
  name text not null,
  applied_at timestamptz not null default now()
);
`;

async function ensureKnown(query: Query, name: string): Promise<number> {
  // to_regclass and its like would answer from a cache that is older than the lock.
  const tables = await query(
    statement(
      "known",
      "select 1 as one from pg_catalog.pg_tables where schemaname = 'tributary' and tablename = 'migration'",
    ),
  );
  if (tables.length === 0) return 0;
  const [row] = await query(
    statement(
      "version",
      "select coalesce(max(number), 0)::bigint as number from tributary.migration",
    ),
  );
  const version = row === undefined ? 0 : numberOf(row, "number");
  const known = postgresMigrations.length;
  if (version > known) {
    // Whoever left a newer schema has left its row with it, so that two versions can run beside each other.
    const [last] = await query(
      statement("oldest", "select oldest::bigint from tributary.migration where number = $1"),
      version,
    );
    const oldest = last === undefined ? null : numberOrNullOf(last, "oldest");
    if (oldest === null || oldest > known) throw newerSchema(name, version, known);
  }
  return version;
}

function statement(name: string, text: string): { readonly name: string; readonly text: string } {
  return { name: name === "" ? "" : `migrate-${name}`, text };
}
