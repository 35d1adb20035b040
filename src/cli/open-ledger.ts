import type { Config } from "../config/config.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import type { Shell } from "./command.ts";
import { ensureConfig } from "./settings.ts";

/** Opens the ledger of the settings, lets `use` work on it, which is told where it is too, closes it. Works while the service runs. */
export async function withLedger<Result>(
  shell: Shell,
  use: (ledger: StoreLedger, place: string) => Promise<Result>,
): Promise<Result> {
  const config = ensureConfig(shell);
  await using ledger = await openLedger(config);
  return await use(ledger, placeOf(config));
}

/** Where the ledger is, without password. */
export function placeOf({ database }: Config): string {
  return database.kind === "sqlite" ? database.path : "PostgreSQL";
}

/** Opens the ledger that the settings name; the code of the other kind of store is not loaded. */
export async function openLedger(config: Config): Promise<StoreLedger> {
  const { database } = config;
  const rules = {
    prices: config.prices,
    concurrencyPerAccount: config.concurrencyPerAccount,
    requestsPerMinute: config.requestsPerMinute,
    leaseMs: config.leaseSeconds * 1_000,
  };
  if (database.kind === "postgres") {
    const { openPostgresLedger } = await import("../ledger/postgres/ledger.ts");
    return openPostgresLedger({ url: database.url, connections: 1, ...rules }, {});
  }
  const { openSqliteLedger } = await import("../ledger/sqlite/ledger.ts");
  return openSqliteLedger(
    { path: database.path, synchronous: config.sqliteSynchronous, ...rules },
    { now: Date.now, telemetry: { ledgerRetry: () => {} } },
  );
}
