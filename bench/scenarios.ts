import { setTimeout as sleep } from "node:timers/promises";
import type { Arm } from "./arms.ts";
import {
  buildRequest,
  type Connections,
  type LoadRequest,
  percentile,
  runStream,
  type StreamResult,
} from "./load.ts";
import { cpuSeconds } from "./process-usage.ts";
import { type BenchFormat, chat } from "./wire.ts";

/** What one scenario measured of one arm in one round, by the name of the figure. */
export type Figures = Readonly<Record<string, number>>;

export interface Load {
  readonly connections: Connections;
  /** How long a window is in which is counted. */
  readonly seconds: number;
}

/** A kind of load; of the formats it names one at a time, and of an arm only those that it has. */
export interface Scenario {
  readonly name: string;
  readonly format: BenchFormat;
  measure(arm: Arm, load: Load): Promise<Figures>;
}

/** Before a window, so that the start of all clients at once is not in it. */
const rampMs = 400;
/** An arm that serves a few requests a second gets more time, up to so much. */
const fewestRequests = 24;
const longestWindowMs = 8_000;
const pacedStreams = 32;
const pacedMs = 10;
const burstStreams = 8;
/** Not more than an answer may have tokens. */
const [fewestChunks, mostChunks] = [50, 60_000];
/** What an answer to the clients of closed loops has, as many as an engine sends for a sentence. */
const answerChunks = 20;

interface Used {
  readonly gateway: number;
  readonly database: number;
}

function used(arm: Arm): Used {
  return {
    gateway: cpuSeconds(arm.processIds()),
    database: cpuSeconds(arm.databaseIds?.() ?? []),
  };
}

/** Clients that send one request after another: what a request costs, and how long its first token takes. */
export function closedLoop(name: string, clients: number, format: BenchFormat = chat): Scenario {
  return {
    name,
    format,
    async measure(arm, load) {
      const request = buildRequest({ chunks: answerChunks, intervalMs: 0 }, { format, arm });
      const firsts: number[] = [];
      let errors = 0;
      const [counting, stopped] = [new AbortController(), new AbortController()];
      async function client(): Promise<void> {
        while (!stopped.signal.aborted) {
          try {
            const { firstMs } = await runStream(arm, request, { ...load, measure: true });
            if (counting.signal.aborted) firsts.push(firstMs);
          } catch (error) {
            report(arm, error);
            errors += 1;
            await sleep(50);
          }
        }
      }
      const running = inParallel(clients, client);
      await sleep(rampMs);
      const startMs = performance.now();
      const before = used(arm);
      counting.abort();
      const passedMs = (): number => performance.now() - startMs;
      do await sleep(load.seconds * 1_000);
      while (firsts.length < fewestRequests && passedMs() < longestWindowMs);
      const after = used(arm);
      const seconds = passedMs() / 1_000;
      const count = firsts.length;
      stopped.abort();
      await running;
      return {
        errors,
        p50: percentile(firsts.slice(0, count), 0.5),
        p99: percentile(firsts.slice(0, count), 0.99),
        rate: count / seconds,
        cpu: ((after.gateway - before.gateway) / count) * 1_000,
        database: ((after.database - before.database) / count) * 1_000,
      };
    },
  };
}

/** Streams whose chunks come at the pace of a fast model; neither their starts nor their ends are in the window. */
export function paced(name: string, format: BenchFormat = chat): Scenario {
  return {
    name,
    format,
    async measure(arm, load) {
      const totalMs = load.seconds * 1_000 + 2 * rampMs;
      const order = { chunks: totalMs / pacedMs, intervalMs: pacedMs };
      const request = buildRequest(order, { format, arm });
      let [chunks, errors] = [0, 0];
      const running = inParallel(pacedStreams, () =>
        runStream(arm, request, {
          ...load,
          measure: true,
          onChunks: (count) => (chunks += count),
        }).catch((error: unknown) => {
          report(arm, error);
          errors += 1;
          return null;
        }),
      );
      await sleep(rampMs);
      const [before, chunksBefore, startMs] = [used(arm), chunks, performance.now()];
      const came = (): number => chunks - chunksBefore;
      do await sleep(load.seconds * 1_000);
      while (came() === 0 && performance.now() - startMs < longestWindowMs);
      const [after, count] = [used(arm), came()];
      const results = await running;
      const delays = results.flatMap((result) => result?.delaysMs.slice(rampMs / pacedMs) ?? []);
      return {
        errors,
        p50: percentile(delays, 0.5),
        p99: percentile(delays, 0.99),
        cpu: ((after.gateway - before.gateway) / count) * 1e6,
      };
    },
  };
}

/** Chunks that come as fast as they are read, so many bytes in a write of the mock. */
export function burst(name: string, writeBytes: number): Scenario {
  /** How many chunks a stream takes to fill a window, which differs a thousandfold between arms. */
  const fitting = new Map<string, number>();
  async function run(arm: Arm, load: Load, chunks: number): Promise<Figures & { work: number }> {
    const request = buildRequest({ chunks, intervalMs: 0, writeBytes });
    const [startMs, before, ownBefore] = [performance.now(), used(arm), process.cpuUsage()];
    let errors = 0;
    await inParallel(burstStreams, () =>
      runStream(arm, request, { ...load, measure: false }).catch((error: unknown) => {
        report(arm, error);
        errors += 1;
      }),
    );
    const cpu = used(arm).gateway - before.gateway;
    const own = process.cpuUsage(ownBefore);
    const all = chunks * burstStreams;
    const rate = all / ((performance.now() - startMs) / 1_000);
    return { errors, cpu: (cpu / all) * 1e6, rate, work: cpu + (own.user + own.system) / 1e6 };
  }
  return {
    name,
    format: chat,
    async measure(arm, load) {
      for (let chunks = fitting.get(arm.name) ?? fewestChunks; ;) {
        const { work, ...figures } = await run(arm, load, chunks);
        // Work and not time, which on a busy machine passes without any.
        if (work >= load.seconds / 4 || chunks >= mostChunks) return figures;
        const more = Math.min(load.seconds / 2 / work, 10);
        chunks = Math.min(Math.ceil(chunks * more), mostChunks);
        fitting.set(arm.name, chunks);
      }
    },
  };
}

const line = "All work and no play makes a dull benchmark. ";

/** A body just below 4 MiB, which is parsed whole and then refused for its bound, and one that is served. */
function largeRequests(): readonly LoadRequest[] {
  return [92_000, 42_000].map((lines) =>
    buildRequest({ chunks: 1, intervalMs: 0 }, { ballast: line.repeat(lines) }),
  );
}

/** The longest that any of 32 streams got nothing, beside so many pairs of bodies of 4 MiB and in the same time without. */
export function largeBodies(name: string, pairs: number): Scenario {
  const larges = largeRequests();
  return {
    name,
    format: chat,
    async measure(arm, load) {
      const slowest: number[] = [];
      for (const sent of [0, pairs]) {
        const order = { chunks: 60 + pairs * 40, intervalMs: pacedMs };
        const running = inParallel(pacedStreams, () =>
          runStream(arm, buildRequest(order), { ...load, measure: true }),
        );
        // What goes wrong below is the error to show, not the streams that are cut by it.
        running.catch(() => undefined);
        for (let pair = 0; pair < sent; pair += 1) {
          await sleep(300);
          for (const large of larges) await sendLarge(arm, large, load);
        }
        slowest.push(Math.max(...(await running).map(longestDelay)));
      }
      return { errors: 0, without: slowest[0] ?? 0, beside: slowest[1] ?? 0 };
    },
  };
}

async function sendLarge(arm: Arm, request: LoadRequest, load: Load): Promise<void> {
  const parts = { ...load, measure: false };
  const answer = await runStream(arm, request, parts).catch(String);
  if (typeof answer === "string" && !answer.includes("length_exceeded")) throw new Error(answer);
}

/** Of a stream's chunks after its start, the one that took longest on its way. */
function longestDelay(result: StreamResult): number {
  return Math.max(...result.delaysMs.slice(20));
}

async function inParallel<Value>(count: number, run: () => Promise<Value>): Promise<Value[]> {
  return await Promise.all(Array.from({ length: count }, run));
}

const reported = new Map<string, number>();

/** The first errors of an arm in words; the others are counted only. */
function report(arm: Arm, error: unknown): void {
  const count = (reported.get(arm.name) ?? 0) + 1;
  reported.set(arm.name, count);
  if (count <= 3) process.stderr.write(`\n${String(error)}\n`);
}
