import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { openRandom } from "../doubles/random.ts";
import { startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { startPostgres } from "../ledger/postgres-server.ts";
import { configOf } from "../service/start-service.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { makeReplica } from "../soak/replica.ts";
import { sendMutatedBodies } from "./bodies.ts";
import { sendRawBytes } from "./raw.ts";
import type { Stage, Tally } from "./stage.ts";
import { sendMutatedStreams } from "./streams.ts";
import { watchProcess } from "./watch-process.ts";

// The whole service in a process of its own under three kinds of nonsense: bodies at its door, bytes on its socket,
// streams of its deployment. It must not end, blame itself, hold credit or memory, or stand still; its ledger must verify.

const usage = `npm run fuzz -- [--bodies N] [--raw N] [--streams N] [--store sqlite|postgres] [--seed S] [--stall MS] [--memory MIB]
  --stall   fails where the main thread computed longer in one go while a small request waited; it is printed in any case`;

const { values } = parseArgs({
  options: {
    bodies: { type: "string", default: "200000" },
    raw: { type: "string", default: "50000" },
    streams: { type: "string", default: "50000" },
    store: { type: "string", default: "sqlite" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    stall: { type: "string", default: "50" },
    memory: { type: "string", default: "400" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(`${usage}\n`);
else process.exitCode = (await fuzz()) ? 0 : 1;

async function fuzz(): Promise<boolean> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-fuzz-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_REQUESTS_PER_MINUTE: "100000000",
    TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "64",
    ...(values.store === "postgres" ? { TRIBUTARY_DATABASE_URL: await database(opened) } : {}),
  };
  const faults: string[] = [];
  const replica = opened.use(
    makeReplica(folder, environment, (line) => {
      if (line.startsWith('{"level":"error"') && faults.length < 100) faults.push(line);
    }),
  );
  await replica.start();
  const config = configOf(environment);
  await using ledger = await openOperatorLedger(config);
  const account = await ledger.createAccount("fuzz", 1_000_000_000_000_000n);
  const { secret: key } = await ledger.createKey(account.id, "fuzz");
  const pool = opened.use(disposable(new Pool(replica.url, { connections: 16 })));
  process.stdout.write(`fuzz on ${values.store}, seed ${values.seed}\n`);

  let failed = 0;
  let passed = 0;
  const check = (name: string, problems: readonly string[]): void => {
    if (problems.length === 0) passed += 1;
    else failed += 1;
    process.stdout.write(`${problems.length === 0 ? "ok    " : "FAILED"} ${name}\n`);
    for (const problem of problems.slice(0, 5)) process.stdout.write(`       ${problem}\n`);
  };

  const kinds = [
    ["mutated bodies", Number(values.bodies), sendMutatedBodies],
    ["raw bytes", Number(values.raw), sendRawBytes],
    ["mutated streams of the deployment", Number(values.streams), sendMutatedStreams],
  ] as const;
  {
    await using watch = watchProcess(replica.pid, replica.url);
    for (const [name, runs, send] of kinds) {
      const problems: string[] = [];
      const report = (problem: string): void => {
        if (problems.length < 100) problems.push(problem);
      };
      const random = openRandom(Number(values.seed));
      const stage: Stage = { url: replica.url, pool, key, deployment, random, report };
      const startedAtMs = performance.now();
      const tally = await send(runs, stage).catch((error: unknown): Tally => {
        report(`it ended early: ${String(error)}`);
        return new Map();
      });
      const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
      problems.push(...faults.splice(0));
      check(`${String(runs)} ${name} in ${String(seconds)} s: ${describe(tally)}`, problems);
      process.stdout.write(
        `       longest stall so far ${watch.longestStallMs.toFixed(1)} ms, most memory ${watch.residentMiBMax.toFixed(0)} MiB\n`,
      );
    }
    check(`no stall over ${values.stall} ms`, above(watch.longestStallMs, Number(values.stall)));
    check(`memory under ${values.memory} MiB`, above(watch.residentMiBMax, Number(values.memory)));
  }
  check(
    "nothing is held",
    await heldOf(async () => (await ledger.showAccount(account.id)).heldNanos),
  );
  const report = await ledger.verify([]);
  check(
    `verify: ${String(report.entries)} entries`,
    report.problems.map((problem) => JSON.stringify(problem)),
  );
  const code = await replica.stop();
  check("the service ends in order", code === 0 ? [] : [`exit code ${String(code)}`]);
  process.stdout.write(`${String(passed)} passed, ${String(failed)} failed\n`);
  return failed === 0;
}

async function database(opened: AsyncDisposableStack): Promise<string> {
  const server = opened.use(await startPostgres());
  return server.createDatabase("fuzz");
}

function disposable(pool: Pool): Pool & AsyncDisposable {
  return Object.assign(pool, { [Symbol.asyncDispose]: () => pool.destroy() });
}

function describe(tally: Tally): string {
  return [...tally]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([kind, times]) => `${kind} ${String(times)}`)
    .join(", ");
}

function above(value: number, most: number): readonly string[] {
  return value <= most ? [] : [`it was ${value.toFixed(1)}`];
}

/** What is still held after a while in which clients that left are settled. */
async function heldOf(read: () => Promise<bigint>): Promise<readonly string[]> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await read()) === 0n) return [];
    await sleep(50);
  }
  return [`${String(await read())} nanos are held`];
}
