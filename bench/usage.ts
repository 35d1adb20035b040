import { openPostgresLedger } from "../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import type { UsageQuery } from "../src/ledger/usage/usage-query.ts";

// node bench/usage.ts sqlite:PATH | postgres://...: how long a year of usage takes, after all of it is kept

const rules = {
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 4,
  requestsPerMinute: 600,
  leaseMs: 60_000,
};

async function open(address: string): Promise<StoreLedger> {
  if (!address.startsWith("sqlite:"))
    return openPostgresLedger({ url: address, connections: 1, ...rules }, {});
  const path = address.slice("sqlite:".length);
  const parts = { now: Date.now, telemetry: { ledgerRetry: () => {} } };
  return openSqliteLedger({ path, synchronous: "normal", ...rules }, parts);
}

/** Adds up what is not kept yet; how many steps it took, and how long the longest was. */
async function keepAll(ledger: StoreLedger): Promise<{ steps: number; longestMs: number }> {
  let [steps, longestMs] = [0, 0];
  for (let after: string | null = ""; after !== null;) {
    const found = await ledger.findUnsummed(after);
    for (let waiting = found.accountIds; waiting.length > 0;) {
      const startedMs = performance.now();
      const { done } = await ledger.keepUsage(waiting);
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      steps += 1;
      waiting = waiting.filter((id) => !done.includes(id));
    }
    after = found.last;
  }
  return { steps, longestMs };
}

const [address] = process.argv.slice(2);
if (address === undefined) throw new Error("name a ledger: sqlite:PATH or postgres://...");
await using ledger = await open(address);
const startedMs = performance.now();
const { longestMs, steps } = await keepAll(ledger);
process.stdout.write(
  `kept in ${String(steps)} steps, ${((performance.now() - startedMs) / 1_000).toFixed(1)} s, the longest ${longestMs.toFixed(1)} ms\n`,
);
const untilMs = Date.now();
const year = {
  accountId: null,
  keyId: null,
  format: null,
  sinceMs: untilMs - 365 * 86_400_000,
  untilMs,
  timezone: "UTC",
} as const;
const queries: readonly (readonly [string, UsageQuery])[] = [
  ["by month", { ...year, by: ["month"] }],
  ["by day", { ...year, by: ["day"] }],
  ["by account", { ...year, by: ["account"] }],
  ["by key", { ...year, by: ["key"] }],
  ["by format", { ...year, by: ["format"] }],
  ["by label", { ...year, by: ["label"] }],
  ["by month and account", { ...year, by: ["month", "account"] }],
  ["by day and account", { ...year, by: ["day", "account"] }],
  ["by month, Europe/Berlin", { ...year, by: ["month"], timezone: "Europe/Berlin" }],
  ["by day, Europe/Berlin", { ...year, by: ["day"], timezone: "Europe/Berlin" }],
  ["by day, America/New_York", { ...year, by: ["day"], timezone: "America/New_York" }],
  ["by day of one account", { ...year, by: ["day"], accountId: "acct_many10000" }],
  ["by hour of a week", { ...year, by: ["hour"], sinceMs: untilMs - 7 * 86_400_000 }],
];
for (const [name, query] of queries) {
  const times: number[] = [];
  let rows = 0;
  for (let round = 0; round < 3; round += 1) {
    const begunMs = performance.now();
    rows = (await ledger.sumUsage(query)).length;
    times.push(performance.now() - begunMs);
  }
  process.stdout.write(
    `${name}: ${times.map((ms) => ms.toFixed(0)).join(", ")} ms, ${String(rows)} rows\n`,
  );
}
