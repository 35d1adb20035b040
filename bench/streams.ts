import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Arm, openDirect, openTributary, startMock } from "./arms.ts";
import { pinToOtherCore } from "./children.ts";
import { openFloor } from "./floor.ts";
import {
  buildRequest,
  type Connections,
  median,
  openConnections,
  percentile,
  runStream,
} from "./load.ts";
import { markdown } from "./markdown.ts";
import { cpuSeconds, residentMebibytes } from "./process-usage.ts";

/** What models do: 20 chunks a second; an answer takes three seconds, so that a third of the streams ends in each. */
const intervalMs = 50;
const answerChunks = 60;

/** How many streams one core carries: the time a chunk takes, CPU and memory, beside the direct connection. */
export async function benchStreams(bench: {
  readonly counts: readonly number[];
  readonly rounds: number;
  readonly seconds: number;
  /** The folder of another checkout; null: none. */
  readonly against: string | null;
}): Promise<void> {
  await using stack = new AsyncDisposableStack();
  pinToOtherCore(process.pid);
  const folder = await mkdtemp(join(tmpdir(), "tributary-streams-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const { origin } = stack.use(await startMock());
  const connections = stack.use(openConnections());
  const most = String(Math.max(...bench.counts) + 100);
  const settings = {
    synchronous: "full" as const,
    environment: {
      TRIBUTARY_GENERATIONS_MAX: most,
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: most,
    },
  };
  const checkouts = [
    ...(bench.against === null ? [] : [{ name: "before", checkout: bench.against }]),
    { name: "sqlite", checkout: null },
  ];
  const arms: Arm[] = [openDirect(origin), stack.use(await openFloor(origin))];
  for (const one of checkouts)
    arms.push(stack.use(await openTributary(origin, folder, { ...settings, ...one })));
  const figures = new Map<string, Figures[]>();
  for (let round = 0; round < bench.rounds; round += 1)
    for (const count of bench.counts)
      for (const arm of round % 2 === 0 ? arms : arms.toReversed()) {
        const name = `${String(count)} streams, ${arm.name}`;
        process.stderr.write(`round ${String(round + 1)}: ${name}\n`);
        const found = await measure(arm, { connections, count, seconds: bench.seconds });
        figures.set(name, [...(figures.get(name) ?? []), found]);
      }
  process.stdout.write(markdown([...figures].map(([name, rounds]) => rowOf(name, rounds))));
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Of one core, %. */
  readonly cpu: number;
  readonly rss: number;
  readonly requests: number;
}

async function measure(
  arm: Arm,
  load: { readonly connections: Connections; readonly count: number; readonly seconds: number },
): Promise<Figures> {
  const { connections, count, seconds } = load;
  const answerMs = answerChunks * intervalMs;
  const request = buildRequest({ chunks: answerChunks, intervalMs });
  const stopped = new AbortController();
  let delays: number[] | null = null;
  let requests = 0;
  async function client(at: number): Promise<void> {
    // Starts are spread, as those of people are.
    await sleep((at / count) * answerMs);
    while (!stopped.signal.aborted) {
      const { delaysMs } = await runStream(arm, request, { connections, measure: true });
      requests += 1;
      for (const delay of delaysMs) delays?.push(delay);
    }
  }
  const running = Promise.all(Array.from({ length: count }, (_, at) => client(at)));
  // What is counted belongs to answers that began once all streams were there.
  await sleep(2 * answerMs);
  const [before, requestsBefore, startMs] = [
    cpuSeconds(arm.processIds()),
    requests,
    performance.now(),
  ];
  delays = [];
  await sleep(seconds * 1_000);
  const passed = (performance.now() - startMs) / 1_000;
  const found = {
    p50: percentile(delays, 0.5),
    p99: percentile(delays, 0.99),
    max: percentile(delays, 1),
    cpu: ((cpuSeconds(arm.processIds()) - before) / passed) * 100,
    rss: residentMebibytes(arm.processIds()),
    requests: (requests - requestsBefore) / passed,
  };
  stopped.abort();
  await running;
  return found;
}

function rowOf(name: string, rounds: readonly Figures[]): Record<string, string> {
  const cell = (figure: keyof Figures, digits: number): string => {
    const values = rounds.map((round) => round[figure]);
    const range = `${Math.min(...values).toFixed(digits)}-${Math.max(...values).toFixed(digits)}`;
    return `${median(values).toFixed(digits)} (${range})`;
  };
  return {
    streams: name,
    "chunk p50 ms": cell("p50", 1),
    "p99 ms": cell("p99", 1),
    "longest ms": cell("max", 0),
    "CPU %": cell("cpu", 0),
    "RSS MiB": cell("rss", 0),
    "requests/s": cell("requests", 0),
  };
}
