import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import type { Agent } from "node:http";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Arm, openTributary, residentMebibytes, startMock } from "./arms.ts";
import { type Attack, attacks } from "./attacks.ts";
import { buildBody, openAgent, percentile, runStream } from "./load.ts";
import { markdown } from "./markdown.ts";

/** How long each attack and each quiet time beside it lasts, and how often they take turns. */
export interface AttackBench {
  readonly seconds: number;
  readonly rounds: number;
  /** The name of one attack; null: all of them. */
  readonly only: string | null;
  /** Whether times are held against the row too; a refusal and too much memory always are. */
  readonly timed: boolean;
}

/** By how much an attack may move another account's time to first token at p99, and what the process may take. */
const row = { movedMs: 20, rssMebibytes: 512, rssKeptShare: 1.5 };

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

/**
 * Time to first token of some accounts while another does its worst; throws when a request of theirs is refused, or the
 * row is not kept. The same process serves all of them, quiet times and attacks in turn, and what counts is the median of
 * the differences: what the machine does beside it shows in both, or in a few of them.
 */
export async function benchAttacks(bench: AttackBench): Promise<void> {
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
  const agent = openAgent();
  stack.defer(() => Promise.resolve(agent.destroy()));
  const served = Array.from({ length: servedAccounts }, () => newKey(folder, "served"));
  const rss = (): number => residentMebibytes(arm.processIds());
  const measure = (): Promise<Times> => firstTokens(served, { arm, agent, seconds: bench.seconds });

  await measure();
  const rssBefore = rss();
  const problems: string[] = [];
  const table = [];
  for (const attack of attacks.filter(({ name }) => (bench.only ?? name) === name)) {
    const [quiet, attacked]: [Times[], Window[]] = [[], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      quiet.push(await measure());
      const key = newKey(folder, attack.name);
      attacked.push(await underAttack(attack, { arm, key, measure, rss }));
    }
    const movedMs = medianMove(quiet, attacked);
    const rssMost = Math.max(...attacked.map((window) => window.rssMost));
    if (bench.timed && movedMs >= row.movedMs)
      problems.push(`${attack.name}: p99 moved by ${movedMs.toFixed(1)} ms`);
    if (rssMost >= row.rssMebibytes) problems.push(`${attack.name}: ${rssMost.toFixed(0)} MiB`);
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
  // Threads for bodies end after half a minute without work, and their memory with them.
  await sleep(35_000);
  const rssAfter = rss();
  process.stdout.write(
    `\nRSS before the first attack ${rssBefore.toFixed(0)} MiB, half a minute after the last ${rssAfter.toFixed(0)} MiB\n`,
  );
  if (rssAfter > rssBefore * row.rssKeptShare)
    problems.push(`RSS did not come back: ${rssBefore.toFixed(0)} -> ${rssAfter.toFixed(0)} MiB`);
  if (problems.length > 0) throw new Error(`the row is not kept: ${problems.join("; ")}`);
}

/** Small requests of all accounts beside each other, a fourth of them large. */
async function firstTokens(
  keys: readonly string[],
  parts: { readonly arm: Arm; readonly agent: Agent; readonly seconds: number },
): Promise<Times> {
  const { agent, arm, seconds } = parts;
  const times: Times = { small: [], large: [] };
  const small = buildBody({ chunks: 2, intervalMs: 1 });
  const large = buildBody({ chunks: 2, intervalMs: 1 }, "All work and no play. ".repeat(5_000));
  const endMs = performance.now() + seconds * 1_000;
  async function run(key: string, at: number): Promise<void> {
    for (let request = at; performance.now() < endMs; request += 1) {
      const isLarge = request % 4 === 3;
      const body = isLarge ? large : small;
      const { firstMs } = await runStream({ ...arm, key }, body, { agent, measure: true });
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
  const left = once(child, "exit");
  let rssMost = 0;
  const watch = setInterval(() => (rssMost = Math.max(rssMost, parts.rss())), 100);
  try {
    await sleep(1_000);
    const times = await parts.measure();
    return { ...times, rssMost };
  } finally {
    child.stdin.end();
    clearInterval(watch);
    await left;
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
        [fileURLToPath(new URL("../src/cli/main.ts", import.meta.url)), ...values, "--json"],
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
