import type { Config } from "../../src/config/config.ts";
import { openLedger } from "../../src/cli/open-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openLedgerHere } from "../ledger/ledger-here.ts";

/** The operator's own connection to the ledger of a service, as a command in another process has it. */
export async function openOperatorLedger(config: Config): Promise<StoreLedger> {
  const { database } = config;
  if (database.kind !== "sqlite") return openLedger(config);
  return openLedgerHere({
    path: database.path,
    synchronous: "normal",
    prices: config.prices,
    concurrencyPerAccount: config.concurrencyPerAccount,
    requestsPerMinute: config.requestsPerMinute,
    leaseMs: config.leaseSeconds * 1_000,
  });
}
