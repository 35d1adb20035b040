import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import type { Config } from "../config/config.ts";
import { ledgerRules } from "../config/ledger-rules.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { CommandError, type Shell } from "./command.ts";
import { ensureConfig, ledgerOrigin } from "./settings.ts";

/** What works on a ledger that a command opens; `place` says where it is. */
export type UseLedger<Result> = (
  ledger: StoreLedger,
  place: string,
  config: Config,
) => Promise<Result>;

/**
 * Opens the ledger of the settings, lets `use` work on it, closes it. Works while the
 * service runs. A ledger that is not there is made only where the command says so: one that was looked for in the wrong
 * folder would otherwise be found there, empty.
 */
export async function withLedger<Result>(
  shell: Shell,
  use: UseLedger<Result>,
  { creates = false } = {},
): Promise<Result> {
  const config = ensureConfig(shell);
  if (!creates) ensureThere(config, shell);
  await using ledger = await openLedger(config, { creates });
  if (!shell.json) shell.stderr.write(`ledger: ${placeOf(config)} (${ledgerOrigin(shell)})\n`);
  return await use(ledger, placeOf(config), config);
}

/** Where the ledger is, without password. */
export function placeOf({ database }: Config): string {
  return database.kind === "sqlite" ? database.path : "PostgreSQL";
}

/** Whether the file of the ledger is there; what a server has is known only when it is asked. */
export function isThere({ database }: Config): boolean {
  return database.kind !== "sqlite" || existsSync(database.path);
}

/** The end of the command where the file of the ledger is missing. */
export function ensureThere(config: Config, shell: Shell): void {
  if (isThere(config)) return;
  throw new CommandError(
    "not_found",
    1,
    `There is no ledger at ${placeOf(config)} (${ledgerOrigin(shell)}). The first start of the service makes it there; to work on another one, name it in TRIBUTARY_DATABASE_URL or its folder in TRIBUTARY_DATA_DIR, or go to the folder with the service's .env.`,
  );
}

/** Opens the ledger that the settings name, making it unless `creates` is false; the code of the other kind of store is not loaded. */
export async function openLedger(config: Config, { creates = true } = {}): Promise<StoreLedger> {
  const { database } = config;
  const rules = ledgerRules(config);
  if (database.kind === "postgres") {
    const { openPostgresLedger } = await import("../ledger/postgres/postgres-ledger.ts");
    return openPostgresLedger(
      { url: database.url, connections: 1, ...rules },
      { creates, actor: thisUser() },
    );
  }
  const { openSqliteLedger } = await import("../ledger/sqlite/sqlite-ledger.ts");
  return openSqliteLedger(
    { path: database.path, synchronous: config.sqliteSynchronous, ...rules },
    { now: Date.now, actor: thisUser(), telemetry: { ledgerRetry: () => {} } },
  );
}

/** Who runs a command, for the audit log and the entries of the journal. */
export function thisUser(): `user:${string}` {
  try {
    return `user:${userInfo().username}`;
  } catch {
    // A container's user may have no name.
    return `user:${String(process.getuid?.() ?? "unknown")}`;
  }
}
