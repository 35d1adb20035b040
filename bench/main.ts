import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  type Arm,
  cpuSeconds,
  openDirect,
  openNginx,
  openTributary,
  residentMebibytes,
  startMock,
} from "./arms.ts";
import { openFloor } from "./floor.ts";
import { buildBody, openAgent, percentile, runStream, type StreamResult } from "./load.ts";
import { markdown } from "./markdown.ts";

// Everything in one run, arm beside arm, since absolute figures of one machine move from run to run; what counts is
// the difference to the direct connection and the ratio to nginx.

const { positionals, values } = parseArgs({
  options: { smoke: { type: "boolean", default: false } },
  allowPositionals: true,
});
if (positionals.length > 0) {
  if (positionals.join(" ") === "engine") {
    const { benchEngine } = await import("./engine.ts");
    await benchEngine({ smoke: values.smoke, cacheDir: null });
    process.exit();
  }
  if (positionals[0] === "attacks") {
    const { benchAttacks } = await import("./attack-bench.ts");
    const only = positionals[1] ?? null;
    await benchAttacks(
      values.smoke
        ? { only, seconds: 2, rounds: 1, timed: false }
        : { only, seconds: 6, rounds: 5, timed: true },
    );
    process.exit();
  }
  if (positionals.join(" ") !== "ledger")
    throw new Error("npm run bench [-- attacks [NAME] | ledger | engine] [--smoke]");
  const { benchLedger } = await import("./ledger.ts");
  await benchLedger(values.smoke ? 100 : 1_500);
  process.exit();
}
const rounds = values.smoke ? 1 : 3;
const firstTokenRequests = values.smoke ? 40 : 400;
const pacedChunks = values.smoke ? 100 : 600;
const burstChunks = values.smoke ? 2_000 : 40_000;
const largeBodies = values.smoke ? 2 : 8;

/** A body just below 4 MiB, which is parsed whole and then refused for its bound, and one that is served. */
const line = "All work and no play makes a dull benchmark. ";
const largeOnes = [92_000, 42_000].map((lines) =>
  buildBody({ chunks: 1, intervalMs: 0 }, line.repeat(lines)),
);

const agent = openAgent();
const pacedStreams = 32;

interface Row {
  readonly arm: Arm;
  readonly firstMs: number[];
  readonly delaysMs: number[];
  pacedCpu: number;
  pacedChunks: number;
  burstCpu: number;
  burstChunks: number;
  burstSeconds: number;
  rss: number;
  stallBefore: number[];
  stallDuring: number[];
}

await using stack = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), "tributary-bench-"));
stack.defer(() => rm(folder, { recursive: true, force: true }));
const mock = stack.use(await startMock());
const nginx = await openNginx(mock.origin, folder);
const floor = stack.use(await openFloor(mock.origin, "http"));
const raw = stack.use(await openFloor(mock.origin, "raw"));
const full = stack.use(await openTributary(mock.origin, folder, { synchronous: "full" }));
const normal = stack.use(await openTributary(mock.origin, folder, { synchronous: "normal" }));
if (nginx === null) process.stdout.write("nginx is not installed: that arm is left out\n");
else stack.use(nginx);
const rows = [
  openDirect(mock.origin),
  ...(nginx === null ? [] : [nginx]),
  raw,
  floor,
  full,
  normal,
].map(newRow);
stack.defer(() => Promise.resolve(agent.destroy()));

for (const row of rows) await warm(row.arm);
for (let round = 0; round < rounds; round += 1) {
  for (const [name, measure] of [
    ["first tokens", measureFirstTokens],
    ["paced", measurePaced],
    ["burst", measureBurst],
  ] as const) {
    progress(`round ${String(round + 1)} of ${String(rounds)}: ${name}`);
    for (const row of rows) await measure(row);
  }
}
for (const row of rows) row.rss = residentMebibytes(row.arm.processIds());
progress("bodies of 4 MiB");
for (const row of rows) await measureStall(row);
progress("");
print();

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
  else if (text !== "") process.stderr.write(`${text}\n`);
}

function newRow(arm: Arm): Row {
  return {
    arm,
    firstMs: [],
    delaysMs: [],
    pacedCpu: 0,
    pacedChunks: 0,
    burstCpu: 0,
    burstChunks: 0,
    burstSeconds: 0,
    rss: 0,
    stallBefore: [],
    stallDuring: [],
  };
}

async function warm(arm: Arm): Promise<void> {
  for (let round = 0; round < 20; round += 1)
    await inParallel(8, () =>
      runStream(arm, buildBody({ chunks: 500, intervalMs: 0 }), { agent, measure: false }),
    );
}

async function measureFirstTokens(row: Row): Promise<void> {
  const each = Math.ceil(firstTokenRequests / 4);
  await inParallel(4, async () => {
    for (let request = 0; request < each; request += 1) {
      const body = buildBody({ chunks: 2, intervalMs: 1 });
      const { firstMs } = await runStream(row.arm, body, { agent, measure: true });
      row.firstMs.push(firstMs);
    }
  });
}

async function measurePaced(row: Row): Promise<void> {
  const before = cpuSeconds(row.arm.processIds());
  const body = buildBody({ chunks: pacedChunks, intervalMs: 10 });
  const results = await inParallel(pacedStreams, () =>
    runStream(row.arm, body, { agent, measure: true }),
  );
  row.pacedCpu += cpuSeconds(row.arm.processIds()) - before;
  row.pacedChunks += pacedChunks * pacedStreams;
  // The first chunks carry the start of all streams at once.
  for (const result of results) row.delaysMs.push(...result.delaysMs.slice(20));
}

async function measureBurst(row: Row): Promise<void> {
  const streams = 8;
  const before = cpuSeconds(row.arm.processIds());
  const startMs = performance.now();
  const body = buildBody({ chunks: burstChunks, intervalMs: 0 });
  await inParallel(streams, () => runStream(row.arm, body, { agent, measure: false }));
  row.burstSeconds += (performance.now() - startMs) / 1_000;
  row.burstCpu += cpuSeconds(row.arm.processIds()) - before;
  row.burstChunks += burstChunks * streams;
}

/** The longest time that any of 32 streams got nothing, around bodies of 4 MiB and in the same time without. */
async function measureStall(row: Row): Promise<void> {
  for (const bodies of [0, largeBodies]) {
    const body = buildBody({ chunks: 60 + largeBodies * 40, intervalMs: 10 });
    const running = inParallel(pacedStreams, () =>
      runStream(row.arm, body, { agent, measure: true }),
    );
    // What goes wrong below is the error to show, not the streams that are cut by it.
    running.catch(() => undefined);
    for (let sent = 0; sent < bodies; sent += 1) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      for (const large of largeOnes) await sendLarge(row.arm, large);
    }
    const delays = (await running).map((result) => longestDelay(result));
    (bodies > 0 ? row.stallDuring : row.stallBefore).push(...delays);
  }
}

async function sendLarge(arm: Arm, body: Buffer): Promise<void> {
  const answer = await runStream(arm, body, { agent, measure: false }).catch(String);
  if (typeof answer === "string" && !answer.includes("length_exceeded")) throw new Error(answer);
}

/** Of a stream's chunks after its start, the one that took longest on its way. */
function longestDelay(result: StreamResult): number {
  return Math.max(...result.delaysMs.slice(20));
}

async function inParallel<Value>(count: number, run: () => Promise<Value>): Promise<Value[]> {
  return await Promise.all(Array.from({ length: count }, run));
}

function print(): void {
  const [direct] = rows;
  const reference = rows.find((row) => row.arm.name === "nginx");
  if (direct === undefined) throw new Error("there is no direct arm");
  const added = (row: Row, sample: "firstMs" | "delaysMs", share: number): string =>
    (percentile(row[sample], share) - percentile(direct[sample], share)).toFixed(2);
  const perMillion = (cpu: number, chunks: number): number => (cpu / chunks) * 1e6;
  const ratio = (value: number, base: number | undefined): string =>
    base === undefined || base === 0 ? "" : ` (${(value / base).toFixed(1)} x)`;
  const table = rows.map((row) => {
    const paced = perMillion(row.pacedCpu, row.pacedChunks);
    const burst = perMillion(row.burstCpu, row.burstChunks);
    const { name } = row.arm;
    const own = name === "direct";
    return {
      arm: name,
      "added TTFT p50 / p99 ms": own
        ? `(${percentile(row.firstMs, 0.5).toFixed(2)} / ${percentile(row.firstMs, 0.99).toFixed(2)})`
        : `${added(row, "firstMs", 0.5)} / ${added(row, "firstMs", 0.99)}`,
      "added chunk p50 / p99 ms": own
        ? `(${percentile(row.delaysMs, 0.5).toFixed(2)} / ${percentile(row.delaysMs, 0.99).toFixed(2)})`
        : `${added(row, "delaysMs", 0.5)} / ${added(row, "delaysMs", 0.99)}`,
      "CPU s per 1M chunks, paced": own
        ? ""
        : paced.toFixed(1) +
          ratio(paced, reference && perMillion(reference.pacedCpu, reference.pacedChunks)),
      burst: own
        ? ""
        : burst.toFixed(1) +
          ratio(burst, reference && perMillion(reference.burstCpu, reference.burstChunks)),
      "burst chunks/s": `${(row.burstChunks / row.burstSeconds / 1_000).toFixed(0)}k`,
      "burst chunks a CPU s": own ? "" : `${(row.burstChunks / row.burstCpu / 1_000).toFixed(0)}k`,
      "RSS MiB": own ? "" : row.rss.toFixed(0),
      "slowest chunk ms, without / with 4 MiB bodies": `${worst(row.stallBefore)} / ${worst(row.stallDuring)}`,
    };
  });
  process.stdout.write(
    `Node ${process.version}, ${String(cpus().length)} cores, ${String(rounds)} rounds\n\n`,
  );
  process.stdout.write(markdown(table));
  process.stdout.write(
    `\nCold start to the first served request: ${full.coldStartMs.toFixed(0)} ms (FULL), ${normal.coldStartMs.toFixed(0)} ms (NORMAL)\n`,
  );
}

function worst(delays: readonly number[]): string {
  return Math.max(...delays).toFixed(1);
}
