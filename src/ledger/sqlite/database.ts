import { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import { rateWindow } from "../migrations/sqlite/rate-tables.ts";
import { newerSchema, oldestReader } from "../migrations/oldest-reader.ts";
import { sqliteMigrations } from "../migrations/sqlite/migrations.ts";
import { execUnread } from "../migrations/sqlite/unread-columns.ts";
import { OperatorError } from "../operator-error.ts";
import { faultKind } from "./fault.ts";
import { type FileGuard, watchFile } from "./file-guard.ts";
import { memoryPath, prepareFile, ratePath, syncFolders, unusable } from "./ledger-files.ts";
import { ledgerMark, movedMark, movingMark, setMark } from "./file-mark.ts";
import { numberOf, textOf } from "../row.ts";
import { getRow } from "./get-row.ts";

/** How the file is opened. `full` syncs every commit and is what the guarantees rest on; `normal` is for measuring. */
export interface DatabaseSettings {
  /** A path, or `:memory:`. */
  readonly path: string;
  readonly synchronous: "full" | "normal";
  /** How long an operation waits for another process; absent: limits.ledgerBusyMs. */
  readonly busyMs?: number;
  /** Pages of the log from which on it is written into the file; absent: limits.ledgerLogPages. */
  readonly logPages?: number;
  /** For `ledger move`: a ledger whose move was interrupted is opened too. */
  readonly moving?: boolean;
}

/** Opens the ledger's file and the rate window beside it, creating and migrating them as needed. */
export function openDatabase(settings: DatabaseSettings): DatabaseSync {
  return openGuardedDatabase(settings).database;
}

/** `openDatabase`, with the guard that notices when the file is no longer the ledger. */
export function openGuardedDatabase(settings: DatabaseSettings): {
  readonly database: DatabaseSync;
  readonly guard: FileGuard;
} {
  const { path } = settings;
  const fresh = path !== memoryPath && prepareFile(path);
  const watch = watchFile(path);
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path, {
      timeout: settings.busyMs ?? limits.ledgerBusyMs,
      readBigInts: true,
      enableForeignKeyConstraints: true,
    });
    configure(database, settings);
    migrate(database, settings);
    openRateWindow(database);
    if (fresh) syncFolders(path);
    return { database, guard: watch.openGuard(database) };
  } catch (error) {
    if (database?.isOpen === true) database.close();
    if (error instanceof OperatorError || faultKind(error) === "bug") throw error;
    throw unusable(path, error);
  }
}

function configure(database: DatabaseSync, settings: DatabaseSettings): void {
  const { logPages = limits.ledgerLogPages, path, synchronous } = settings;
  // macOS flushes a disk's own cache only when asked by this name; elsewhere it changes nothing.
  const barrier =
    synchronous === "full" ? "pragma fullfsync = 1; pragma checkpoint_fullfsync = 1;" : "";
  database.exec(`pragma synchronous = ${synchronous}; ${barrier} pragma temp_store = memory;`);
  database.prepare("attach ? as rate").run(ratePath(path));
  for (const schema of ["main", "rate"]) {
    const mode = whileBusy(() => getRow(database.prepare(`pragma ${schema}.journal_mode = wal`)));
    if (path !== memoryPath && (mode === null || textOf(mode, "journal_mode") !== "wal"))
      throw unusable(path, new Error("the file system cannot share memory between processes"));
    database.exec(`pragma ${schema}.journal_size_limit = ${String(limits.ledgerLogBytesKept)};`);
  }
  database.exec(`pragma wal_autocheckpoint = ${String(logPages)};`);
  // Without syncs at commit a power cut takes the last tickets, and leaves the file whole.
  database.exec("pragma rate.synchronous = normal;");
}

/** Reads the version under the write lock: of two processes that start at once one migrates. */
function migrate(database: DatabaseSync, { moving, path }: DatabaseSettings): void {
  inTransaction(database, () => {
    const version = pragma(database, "main.user_version");
    const owner = pragma(database, "main.application_id");
    const objects = getRow(database.prepare("select count(*) as count from main.sqlite_schema"));
    const empty = objects === null || numberOf(objects, "count") === 0;
    if (owner === movedMark)
      throw new OperatorError(
        "ledger_unusable",
        `The ledger in ${path} was moved to PostgreSQL and is only a backup. Set TRIBUTARY_DATABASE_URL to the database that it was moved to; docs/ledger.md tells how to go back.`,
      );
    if (owner === movingMark && moving !== true)
      throw new OperatorError(
        "ledger_unusable",
        `A move of the ledger in ${path} to PostgreSQL was interrupted. Run the same \`ledger move\` again; where it finds the ledger there already, set TRIBUTARY_DATABASE_URL to it. docs/ledger.md tells how to go back.`,
      );
    if (!empty && owner !== ledgerMark && owner !== movingMark)
      throw new OperatorError(
        "ledger_unusable",
        `${path} is a database of another program. Name another file in TRIBUTARY_DATABASE_URL.`,
      );
    if (version > sqliteMigrations.length) ensureReadable(database, version, path);
    if (version >= sqliteMigrations.length) return;
    // A new ledger has no rows to leave unread, and is made in half the time by SQLite itself.
    const exec = empty ? execAll : execUnread;
    for (const { steps } of sqliteMigrations.slice(version)) {
      for (const step of steps) {
        if (typeof step === "string") exec(database, step);
        else step(database);
      }
    }
    setMark(database, ledgerMark);
    database.prepare("update schema_readers set oldest = ?").run(oldestReader(sqliteMigrations));
    database.exec(`pragma main.user_version = ${String(sqliteMigrations.length)}`);
  });
}

function execAll(database: DatabaseSync, step: string): void {
  database.exec(step);
}

/** A newer version's file says which older ones may open it, so that two versions can take turns while one is replaced. */
function ensureReadable(database: DatabaseSync, version: number, path: string): void {
  const known = sqliteMigrations.length;
  const table = "select 1 as one from main.sqlite_schema where name = 'schema_readers'";
  const row =
    getRow(database.prepare(table)) === null
      ? null
      : getRow(database.prepare("select oldest from main.schema_readers"));
  if (row === null || numberOf(row, "oldest") > known) throw newerSchema(path, version, known);
}

function openRateWindow(database: DatabaseSync): void {
  inTransaction(database, () => {
    if (pragma(database, "rate.user_version") === rateWindow.version) return;
    database.exec(rateWindow.schema);
    database.exec(`pragma rate.user_version = ${String(rateWindow.version)}`);
  });
}

function pragma(database: DatabaseSync, name: string): number {
  const row = getRow(database.prepare(`pragma ${name}`));
  return row === null ? 0 : Number(Object.values(row)[0] ?? 0);
}

function inTransaction(database: DatabaseSync, step: () => void): void {
  whileBusy(() => {
    database.exec("begin immediate");
    try {
      step();
      database.exec("commit");
    } catch (error) {
      if (database.isTransaction) database.exec("rollback");
      throw error;
    }
  });
}

/**
 * Changing the journal mode and recovering a log answer "busy" at once, whatever the busy timeout says, so that two
 * processes that start together need this loop.
 */
function whileBusy<Value>(step: () => Value): Value {
  const endMs = performance.now() + limits.ledgerBusyMs;
  for (;;) {
    try {
      return step();
    } catch (error) {
      if (faultKind(error) !== "busy" || performance.now() > endMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}
