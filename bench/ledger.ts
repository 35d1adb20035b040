import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import type { AdmitOrder } from "../src/ledger/ledger.ts";
import { openPostgresLedger } from "../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import { findPostgres, startPostgres } from "../tests/ledger/postgres-server.ts";
import { percentile } from "./load.ts";
import { markdown } from "./markdown.ts";

// What the three steps of a request cost in each store, as the service calls them: through the ledger's thread or the
// driver's connections, with every commit synced where the store is told so. Limits are out of the way.

const rules = {
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 1_000_000,
  requestsPerMinute: 100_000_000,
  leaseMs: 600_000,
};

interface Load {
  readonly callers: number;
  readonly accounts: number;
}

const loads: readonly Load[] = [
  { callers: 1, accounts: 1 },
  { callers: 32, accounts: 32 },
  { callers: 32, accounts: 1 },
];

/** Measures every store under every load, each step for `stepMs`, and prints a table. */
export async function benchLedger(stepMs: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-bench-ledger-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const table: Readonly<Record<string, string>>[] = [];
  for (const synchronous of ["full", "normal"] as const) {
    const path = join(folder, `${synchronous}.sqlite`);
    await using ledger = await openSqliteLedger({ path, synchronous, ...rules }, { now: Date.now });
    table.push(...(await measureStore(`SQLite, ${synchronous.toUpperCase()}`, ledger, stepMs)));
  }
  if (findPostgres() === null)
    process.stdout.write("PostgreSQL is not installed: that store is left out\n");
  else {
    await using server = await startPostgres({ fsync: true });
    const url = await server.createDatabase("bench");
    await using ledger = await openPostgresLedger({ url, ...rules }, {});
    table.push(...(await measureStore("PostgreSQL, fsync on", ledger, stepMs)));
  }
  process.stdout.write(`Node ${process.version}, ${String(cpus().length)} cores\n\n`);
  process.stdout.write(markdown(table));
}

async function measureStore(
  store: string,
  ledger: StoreLedger,
  stepMs: number,
): Promise<readonly Readonly<Record<string, string>>[]> {
  const rows: Readonly<Record<string, string>>[] = [];
  for (const load of loads) {
    const keys = await makeKeys(ledger, load);
    await measureSteps(ledger, keys, Math.min(stepMs, 300));
    const steps = await measureSteps(ledger, keys, stepMs);
    const callers = `${String(load.callers)}${load.callers > load.accounts ? ", one account" : ""}`;
    for (const [step, { seconds, sample }] of Object.entries(steps))
      rows.push({
        store,
        callers,
        step,
        "p50 ms": percentile(sample, 0.5).toFixed(3),
        "p99 ms": percentile(sample, 0.99).toFixed(3),
        "a second": Math.round(sample.length / seconds).toLocaleString("en"),
      });
  }
  const { ok } = await ledger.verify([]);
  if (!ok) throw new Error(`${store}: the ledger does not add up after the load`);
  return rows;
}

/** A key a caller; callers share accounts evenly. */
async function makeKeys(ledger: StoreLedger, load: Load): Promise<readonly string[]> {
  const accounts = [];
  for (let index = 0; index < load.accounts; index += 1)
    accounts.push(await ledger.createAccount("bench", 10n ** 17n));
  const keys = [];
  for (let caller = 0; caller < load.callers; caller += 1) {
    const account = accounts[caller % accounts.length];
    if (account !== undefined) keys.push((await ledger.createKey(account.id, "bench")).secret);
  }
  return keys;
}

interface Measured {
  readonly sample: number[];
  seconds: number;
}

/** One step after the other, so that each has a rate of its own: what was admitted is then settled. */
async function measureSteps(
  ledger: StoreLedger,
  keys: readonly string[],
  stepMs: number,
): Promise<Readonly<Record<"authorize" | "admit" | "settle", Measured>>> {
  const callers = await Promise.all(keys.map((key) => ledger.authorize(key, true)));
  const admitted: AdmitOrder[][] = callers.map(() => []);
  const until = (endMs: number): boolean => performance.now() < endMs;
  const authorize = await measure(keys.length, async (time, at) => {
    for (const endMs = performance.now() + stepMs; until(endMs);)
      await time(() => ledger.authorize(keys[at] ?? "", true));
  });
  const admit = await measure(keys.length, async (time, at) => {
    const [caller, orders] = [callers[at], admitted[at]];
    if (caller === undefined || orders === undefined) return;
    for (const endMs = performance.now() + stepMs; until(endMs);) {
      const order: AdmitOrder = {
        requestId: `req_${crypto.randomUUID().replaceAll("-", "")}`,
        caller,
        inputBound: 1_000,
        outputTokensRequested: 100,
        outputTokensFitting: null,
        format: "messages",
        streamed: true,
        label: null,
      };
      await time(() => ledger.admit(order));
      orders.push(order);
    }
  });
  const settle = await measure(keys.length, async (time, at) => {
    for (const { caller, requestId } of admitted[at] ?? [])
      await time(() =>
        ledger.settle({
          requestId,
          accountId: caller.accountId,
          outcome: "completed",
          usage: { inputTokens: 500, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
          firstOutputMs: 3,
          totalMs: 9,
        }),
      );
  });
  return { authorize, admit, settle };
}

type Time = (call: () => Promise<unknown>) => Promise<void>;

async function measure(
  callers: number,
  work: (time: Time, caller: number) => Promise<void>,
): Promise<Measured> {
  const sample: number[] = [];
  const time: Time = async (call) => {
    const startMs = performance.now();
    await call();
    sample.push(performance.now() - startMs);
  };
  const startMs = performance.now();
  await Promise.all(Array.from({ length: callers }, (_, caller) => work(time, caller)));
  return { sample, seconds: (performance.now() - startMs) / 1_000 };
}
