import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Arm, openDirect, openNginx, openTributary, startMock } from "./arms.ts";
import { pinToOtherCore } from "./children.ts";
import { openFloor } from "./floor.ts";
import { openConnections } from "./load.ts";
import { describeRun, passedMinutes } from "./machine.ts";
import { openPeer, peers } from "./peers.ts";
import { openOnPostgres } from "./postgres-arm.ts";
import { residentMebibytes } from "./process-usage.ts";
import { documentedRatios, errorsIn, printRatios, roundsOfCheck, worseRatios } from "./ratios.ts";
import { type ArmFigures, printComparison, printTables } from "./report.ts";
import {
  burst,
  closedLoop,
  type Figures,
  largeBodies,
  type Load,
  paced,
  type Scenario,
} from "./scenarios.ts";
import { openCollector } from "./telemetry.ts";
import { type BenchFormat, chat, formats } from "./wire.ts";

// Everything in one run, arm beside arm, since absolute figures of one machine move from run to run; what counts is
// the difference to the direct connection and the ratio to the floor, round by round.

export interface ArmBench {
  /** Whether other gateways are installed and measured too. */
  readonly peers: boolean;
  /** Names of arms, scenarios and formats; null: all of them. */
  readonly only: readonly string[] | null;
  readonly scenarios: readonly string[] | null;
  readonly formats: readonly string[] | null;
  readonly rounds: number;
  readonly seconds: number;
  /** No round is begun that would end later. */
  readonly minutes: number;
  /** The folder of another checkout; null: none. */
  readonly against: string | null;
  /** Whether the service on SQLite that sends traces, metrics and logs is compared with one that sends nothing. */
  readonly telemetry: boolean;
}

const everyScenario: readonly Scenario[] = [
  ...formats.flatMap((format) => [
    closedLoop("ttft", 4, format),
    closedLoop("capacity", 64, format),
    paced("paced", format),
  ]),
  ...[1, 4, 16].map((kibibytes) => burst(`burst-${String(kibibytes)}`, kibibytes * 1_024)),
];

/** What `--only`, `--scenarios` and `--formats` may name. */
export function namesOf(withPeers: boolean): Record<"arms" | "scenarios" | "formats", string[]> {
  const arms = ["direct", "nginx", "floor", "floor-without-http", "sqlite", "postgres"];
  return {
    arms: withPeers ? [...arms, ...peers.map(({ name }) => name)] : arms,
    scenarios: [...new Set(everyScenario.map(({ name }) => name)), "bodies"],
    formats: formats.map(({ name }) => name),
  };
}

/** Measures the arms in turn and prints the tables of docs/performance.md. */
export async function benchArms(bench: ArmBench): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const startedAt = new Date();
  const run = await openRun(bench, stack);
  const scenarios = everyScenario.filter(
    ({ format, name }) => isIn(bench.scenarios, name) && isIn(bench.formats, format.name),
  );
  await run.measureOnce(scenarios, Math.min(bench.seconds, 1));
  const endMs = performance.now() + (bench.minutes - passedMinutes(startedAt)) * 60_000;
  const rounds = await run.measureInTurn(scenarios, bench.rounds, endMs);
  run.measureMemory();
  if (isIn(bench.scenarios, "bodies")) await run.measureBodies(8);
  progress("");
  const { minutes, seconds } = bench;
  process.stdout.write(describeRun(run, { rounds, seconds, minutes, startedAt }));
  process.stdout.write(printTables(run.figures));
  const title = bench.telemetry
    ? "Sent (now) against not sent (before)"
    : "Against the other checkout";
  process.stdout.write(printComparison(run.figures, before, title));
}

/** A short round of everything, so that all of it is known to run; rejects when a ratio to the floor is much worse. */
export async function checkRatios(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const all = { peers: false, only: null, scenarios: null, formats: null, against: null };
  const bench = { ...all, telemetry: false, rounds: 1, seconds: 1, minutes: 5 };
  const run = await openRun(bench, stack);
  await run.measureOnce(everyScenario, 0.1);
  await run.measureBodies(1);
  const compared = run.only(["floor", "sqlite"]);
  const checked = everyScenario.filter(
    ({ format, name }) => `${name}.${format.name}.cpu` in documentedRatios,
  );
  let worse: readonly string[] = [];
  for (const rounds of roundsOfCheck) {
    await compared.measureInTurn(checked, rounds);
    worse = worseRatios(compared.figures);
    if (worse.length === 0) break;
  }
  progress("");
  const errors = [run, compared].flatMap(({ figures }) => errorsIn(figures));
  process.stdout.write(printTables(compared.figures) + printRatios(compared.figures));
  if (errors.length > 0 || worse.length > 0) throw new Error([...errors, ...worse].join("\n"));
}

async function openRun(bench: ArmBench, stack: AsyncDisposableStack): Promise<BenchRun> {
  pinToOtherCore(process.pid);
  const folder = await mkdtemp(join(tmpdir(), "tributary-bench-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const mock = stack.use(await startMock());
  const run = new BenchRun({ connections: stack.use(openConnections()), seconds: bench.seconds });
  for (const { name, open } of armsOf(bench, mock.origin, folder)) {
    progress(`starting ${name}`);
    try {
      run.arms.push(stack.use(await open()));
    } catch (error) {
      const why = `${name}: ${error instanceof Error ? error.message : String(error)}`;
      progress(why);
      run.missing.push(why);
    }
  }
  return run;
}

const before = "before-";

interface ArmSource {
  readonly name: string;
  /** Rejects, with a reason for the reader, where the arm cannot be had. */
  readonly open: () => Promise<Arm>;
}

function armsOf(bench: ArmBench, origin: string, folder: string): readonly ArmSource[] {
  const own = (prefix: string, checkout: string | null): readonly ArmSource[] => [
    {
      name: `${prefix}sqlite`,
      open: () =>
        openTributary(origin, folder, { synchronous: "full", name: `${prefix}sqlite`, checkout }),
    },
    {
      name: `${prefix}postgres`,
      open: () => openOnPostgres(origin, folder, { name: `${prefix}postgres`, checkout }),
    },
  ];
  if (bench.telemetry)
    return [
      { name: "direct", open: () => Promise.resolve(openDirect(origin)) },
      ...own(before, null).slice(0, 1),
      { name: "sqlite", open: () => openSending(origin, folder) },
    ];
  const sources: readonly ArmSource[] = [
    { name: "nginx", open: () => openNginx(origin, folder) },
    { name: "floor", open: () => openFloor(origin) },
    ...(bench.peers ? [] : [{ name: "floor-without-http", open: () => openFloor(origin, "raw") }]),
    ...own("", null),
    ...(bench.against === null ? [] : own(before, resolve(bench.against))),
    ...(bench.peers
      ? peers.map((peer) => ({ name: peer.name, open: () => openPeer(peer, origin, folder) }))
      : []),
  ];
  return [
    // Others are compared with it.
    { name: "direct", open: () => Promise.resolve(openDirect(origin)) },
    ...sources.filter(({ name }) => isIn(bench.only, name.replace(before, ""))),
  ];
}

/** The service as an operator with a collector runs it: all three signals, and 1 % of the traces that callers did not begin. */
async function openSending(origin: string, folder: string): Promise<Arm> {
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: await openCollector(),
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.01",
  };
  return await openTributary(origin, folder, { synchronous: "full", name: "sqlite", environment });
}

function isIn(names: readonly string[] | null, name: string): boolean {
  return names?.includes(name) ?? true;
}

/** The arms that could be had, and what was measured of them. */
export class BenchRun {
  readonly arms: Arm[] = [];
  readonly missing: string[] = [];
  readonly figures = new Map<string, ArmFigures>();
  readonly #load: Load;

  constructor(load: Load) {
    this.#load = load;
  }

  /** The same arms, or some of them, with nothing measured yet. */
  only(names: readonly string[]): BenchRun {
    const run = new BenchRun(this.#load);
    run.arms.push(...this.arms.filter(({ name }) => names.includes(name)));
    return run;
  }

  /** In short windows and for no table: until code is compiled and pools are filled. */
  async measureOnce(scenarios: readonly Scenario[], seconds: number): Promise<void> {
    for (const arm of this.arms)
      for (const scenario of scenarios.filter(({ format }) => has(arm, format))) {
        progress(`warming ${arm.name}: ${scenario.name}, ${scenario.format.name}`);
        const { errors = 0 } = await scenario.measure(arm, { ...this.#load, seconds });
        this.#add(arm, "warming.", { errors });
      }
  }

  /** Every scenario with all arms before the next one, in an order that turns round by round; how many rounds there were. */
  async measureInTurn(
    scenarios: readonly Scenario[],
    rounds: number,
    endMs = Number.POSITIVE_INFINITY,
  ): Promise<number> {
    let longestMs = 0;
    for (let round = 1; round <= rounds; round += 1) {
      const startMs = performance.now();
      if (startMs + longestMs > endMs) return round - 1;
      for (const scenario of scenarios) {
        const { format, name } = scenario;
        progress(`round ${String(round)} of ${String(rounds)}: ${name}, ${format.name}`);
        const arms = round % 2 === 1 ? this.arms : this.arms.toReversed();
        for (const arm of arms.filter((one) => has(one, format)))
          this.#add(arm, `${name}.${format.name}.`, await scenario.measure(arm, this.#load));
      }
      longestMs = Math.max(longestMs, performance.now() - startMs);
    }
    return rounds;
  }

  measureMemory(): void {
    for (const arm of this.arms)
      if (arm.processIds().length > 0)
        this.#add(arm, "", {
          rss: residentMebibytes(arm.processIds()),
          coldStart: arm.coldStartMs ?? 0,
        });
  }

  /** Not of peers, which need not take such bodies. */
  async measureBodies(pairs: number): Promise<void> {
    const scenario = largeBodies("bodies", pairs);
    for (const arm of this.arms.filter(({ isPeer }) => isPeer !== true)) {
      progress(`bodies of 4 MiB: ${arm.name}`);
      this.#add(arm, "bodies.chat.", await scenario.measure(arm, this.#load));
    }
  }

  #add(arm: Arm, prefix: string, measured: Figures): void {
    const own = this.figures.get(arm.name) ?? new Map<string, number[]>();
    this.figures.set(arm.name, own);
    for (const [name, value] of Object.entries(measured)) {
      const values = own.get(prefix + name) ?? [];
      values.push(value);
      own.set(prefix + name, values);
    }
  }
}

function has(arm: Arm, format: BenchFormat): boolean {
  return arm.formats?.includes(format) ?? format === chat;
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
  else if (text !== "") process.stderr.write(`${text}\n`);
}
