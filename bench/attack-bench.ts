import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Arm, openTributary, startMock } from "./arms.ts";
import { type Attack, attacks } from "./attacks.ts";
import { buildRequest, type Connections, openConnections, percentile, runStream } from "./load.ts";
import { markdown } from "./markdown.ts";
import { residentMebibytes } from "./process-usage.ts";

/** How long each attack and each quiet time beside it lasts, and how often they take turns. */
export interface AttackBench {
  readonly seconds: number;
  readonly rounds: number;
  /** The name of one attack; null: all of them. */
  readonly only: string | null;
  /** Whether times are held against the row, and quiet ones measured before each; a refusal and memory always are. */
  readonly timed: boolean;
}

/**
 * By how much an attack may move another account's time to first token at p99, what the process may take, and by how much
 * a second round of all attacks may leave more than the first. Malloc keeps what it has divided: 190 to 300 MiB are left,
 * this time more and that time less, but not more with each round.
 */
const row = { movedMs: 20, rssMebibytes: 512, rssGrownMebibytes: 100 };

/** Accounts that are served meanwhile, each below its rate of 600 requests a minute. */
const servedAccounts = 4;
const pauseMs = 110;

interface Times {
  readonly small: number[];
  /** Those of bodies of 110 KB, which pass a thread. */
  readonly large: number[];
}

interface Window extends Times {
  readonly rssMost: number;
}

/** What is measured, and with what. */
interface Bench extends AttackBench {
  readonly measure: () => Promise<Times>;
  readonly rss: () => number;
  /** Lets a new account do it, while the others are measured. */
  readonly attack: (attack: Attack) => Promise<Window>;
}

/**
 * Time to first token of some accounts while another does its worst; throws when a request of theirs is refused, or the
 * row is not kept. The same process serves all of them, quiet times and attacks in turn, and what counts is the median of
 * the differences: what the machine does beside it shows in both, or in a few of them. All attacks come a second time
 * for what they leave.
 */
export async function benchAttacks(settings: AttackBench): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-attacks-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const mock = stack.use(await startMock());
  const arm = stack.use(
    await openTributary(mock.origin, folder, {
      synchronous: "normal",
      everyCore: true,
      environment: {
        TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "4",
        TRIBUTARY_REQUESTS_PER_MINUTE: "600",
      },
    }),
  );
  const connections = stack.use(openConnections());
  const served = Array.from({ length: servedAccounts }, () => newKey(folder, "served"));
  const rss = (): number => residentMebibytes(arm.processIds());
  const measure = (): Promise<Times> =>
    firstTokens(served, { arm, connections, seconds: settings.seconds });
  const bench: Bench = {
    ...settings,
    rss,
    measure,
    attack: (attack) =>
      underAttack(attack, { arm, key: newKey(folder, attack.name), measure, rss }),
  };
  const problems = [...(await benchTimes(bench)), ...(await benchMemory(bench))];
  if (problems.length > 0) throw new Error(`the row is not kept: ${problems.join("; ")}`);
}

/** Attack after attack, a row each; what is wrong with them. */
async function benchTimes(bench: Bench): Promise<readonly string[]> {
  const problems: string[] = [];
  const table = [];
  const first = await bench.measure();
  for (const attack of chosen(bench)) {
    const [quiet, attacked]: [Times[], Window[]] = [[], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      quiet.push(bench.timed ? await bench.measure() : first);
      attacked.push(await bench.attack(attack));
    }
    const movedMs = medianMove(quiet, attacked);
    const rssMost = Math.max(...attacked.map((window) => window.rssMost));
    if (bench.timed && movedMs >= row.movedMs)
      problems.push(`${attack.name}: p99 moved by ${movedMs.toFixed(1)} ms`);
    problems.push(...tooMuch(attack, rssMost));
    table.push({
      attack: attack.name,
      "quiet, TTFT p50 / p99 ms": figure(quiet, "small"),
      "under attack": figure(attacked, "small"),
      "p99 moved by ms": movedMs.toFixed(1),
      "110 KB, quiet": figure(quiet, "large"),
      "110 KB, under attack": figure(attacked, "large"),
      "RSS MiB, most": rssMost.toFixed(0),
    });
    process.stderr.write(`${Object.values(table.at(-1) ?? {}).join(" | ")}\n`);
  }
  process.stdout.write(markdown(table));
  return problems;
}

/** What the attacks leave, those before and another round of them; what is wrong with it. */
async function benchMemory(bench: Bench): Promise<readonly string[]> {
  const problems: string[] = [];
  const first = await left(bench);
  for (const attack of chosen(bench))
    problems.push(...tooMuch(attack, (await bench.attack(attack)).rssMost));
  const second = await left(bench);
  process.stdout.write(
    `\nRSS half a minute after the attacks ${first.toFixed(0)} MiB, after a second round of them ${second.toFixed(0)} MiB\n`,
  );
  if (second > first + row.rssGrownMebibytes)
    problems.push(`RSS grows with each round: ${first.toFixed(0)} -> ${second.toFixed(0)} MiB`);
  return problems;
}

function chosen({ only }: AttackBench): readonly Attack[] {
  return attacks.filter(({ name }) => (only ?? name) === name);
}

function tooMuch({ name }: Attack, rssMost: number): readonly string[] {
  return rssMost < row.rssMebibytes ? [] : [`${name}: ${rssMost.toFixed(0)} MiB`];
}

/** MiB. Threads for bodies end after half a minute without work, and their memory with them. */
async function left({ rss }: Bench): Promise<number> {
  await sleep(35_000);
  return rss();
}

/** Small requests of all accounts beside each other, a fourth of them large. */
async function firstTokens(
  keys: readonly string[],
  parts: { readonly arm: Arm; readonly connections: Connections; readonly seconds: number },
): Promise<Times> {
  const { arm, connections, seconds } = parts;
  const times: Times = { small: [], large: [] };
  const order = { chunks: 2, intervalMs: 1 };
  const small = buildRequest(order);
  const large = buildRequest(order, { ballast: "All work and no play. ".repeat(5_000) });
  const endMs = performance.now() + seconds * 1_000;
  async function run(key: string, at: number): Promise<void> {
    for (let request = at; performance.now() < endMs; request += 1) {
      const isLarge = request % 4 === 3;
      const { firstMs } = await runStream({ ...arm, key }, isLarge ? large : small, {
        connections,
        measure: true,
      });
      times[isLarge ? "large" : "small"].push(firstMs);
      await sleep(pauseMs);
    }
  }
  await Promise.all(keys.map(run));
  return times;
}

async function underAttack(
  attack: Attack,
  parts: {
    readonly arm: Arm;
    readonly key: string;
    readonly measure: () => Promise<Times>;
    readonly rss: () => number;
  },
): Promise<Window> {
  const program = fileURLToPath(new URL("attack-child.ts", import.meta.url));
  const values = [program, attack.name, new URL(parts.arm.url).origin, parts.key];
  const child = spawn(process.execPath, values, { stdio: ["pipe", "ignore", "inherit"] });
  // Elsewhere an attacker has processors of its own: those it takes here, no gateway could give back.
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  const ended = once(child, "exit");
  let rssMost = 0;
  const watch = setInterval(() => (rssMost = Math.max(rssMost, parts.rss())), 100);
  try {
    await sleep(1_000);
    const times = await parts.measure();
    return { ...times, rssMost };
  } finally {
    child.stdin.end();
    clearInterval(watch);
    await ended;
  }
}

function figure(windows: readonly Times[], size: keyof Times): string {
  const times = windows.flatMap((window) => window[size]);
  return `${percentile(times, 0.5).toFixed(1)} / ${percentile(times, 0.99).toFixed(1)}`;
}

/** Of each attack against the quiet time before it. */
function medianMove(quiet: readonly Times[], attacked: readonly Times[]): number {
  const moves = attacked.map(
    ({ small }, round) => percentile(small, 0.99) - percentile(quiet[round]?.small ?? [], 0.99),
  );
  return percentile(moves, 0.5);
}

/** A new account each time, so that no rate is left over from the last one. */
function newKey(folder: string, name: string): string {
  const run = (...values: readonly string[]): Record<string, unknown> =>
    JSON.parse(
      execFileSync(
        process.execPath,
        [fileURLToPath(new URL("../src/cli/tributary.cjs", import.meta.url)), ...values, "--json"],
        {
          cwd: folder,
          env: {
            PATH: process.env["PATH"],
            HOME: process.env["HOME"],
            TRIBUTARY_DATA_DIR: join(folder, "data-normal"),
          },
          encoding: "utf8",
        },
      ),
    ) as Record<string, unknown>;
  const account = run("account", "create", name.replaceAll(/\W/g, "-"), "--credit", "1000");
  return String(run("key", "create", String(account["id"]))["key"]);
}
