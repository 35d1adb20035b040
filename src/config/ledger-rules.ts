import type { Config } from "./config.ts";

/** What the ledger decides by. */
export function ledgerRules(config: Config) {
  return {
    prices: config.prices,
    concurrencyPerAccount: config.concurrencyPerAccount,
    requestsPerMinute: config.requestsPerMinute,
    leaseMs: config.leaseSeconds * 1_000,
  };
}
