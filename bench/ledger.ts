import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgresLedger } from "../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import { findPostgres, startPostgres } from "../tests/ledger/postgres-server.ts";
import { type Load, makeKeys, measureSteps, rules } from "./ledger-steps.ts";
import { percentile } from "./load.ts";
import { markdown } from "./markdown.ts";

const loads: readonly Load[] = [
  { callers: 1, accounts: 1 },
  { callers: 32, accounts: 32 },
  { callers: 32, accounts: 1 },
];

/** Measures what the steps of a request cost in every store under every load, each for `stepMs`, and prints a table. */
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
    await measureSteps(ledger, keys, { stepMs: Math.min(stepMs, 300), most: Infinity });
    const steps = await measureSteps(ledger, keys, { stepMs, most: Infinity });
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
