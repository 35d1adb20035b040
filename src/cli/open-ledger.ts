import type { Config } from "../config/config.ts";
import type { SqliteLedger } from "../ledger/sqlite/ledger.ts";
import { CommandError, type Shell } from "./command.ts";
import { ensureConfig } from "./settings.ts";

/** Opens the ledger of the settings, lets `use` work on it, closes it. Works while the service runs. */
export async function withLedger<Result>(
  shell: Shell,
  use: (ledger: SqliteLedger) => Promise<Result>,
): Promise<Result> {
  await using ledger = await openLedger(ensureConfig(shell));
  return await use(ledger);
}

/** Opens the ledger that the settings name. */
export async function openLedger(config: Config): Promise<SqliteLedger> {
  const { openSqliteLedger } = await import("../ledger/sqlite/ledger.ts");
  if (config.database.kind !== "sqlite")
    throw new CommandError("settings", 2, "This build keeps its ledger in SQLite.");
  return openSqliteLedger(
    {
      path: config.database.path,
      synchronous: config.sqliteSynchronous,
      prices: config.prices,
      concurrencyPerAccount: config.concurrencyPerAccount,
      requestsPerMinute: config.requestsPerMinute,
      leaseMs: config.leaseSeconds * 1_000,
    },
    { now: Date.now, telemetry: { ledgerRetry: () => {} } },
  );
}
