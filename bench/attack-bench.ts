import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openTributary, residentMebibytes, startMock } from "./arms.ts";
import { type Attack, attacks } from "./attacks.ts";
import { buildBody, openAgent, percentile, runStream } from "./load.ts";
import { markdown } from "./markdown.ts";

/** How long each attack and each quiet time beside it lasts, and how often they take turns. */
export interface AttackBench {
  readonly seconds: number;
  readonly rounds: number;
  /** The name of one attack; null: all of them. */
  readonly only: string | null;
}

// The same process serves both accounts, quiet times and attacks in turn, so that what the machine does beside it shows
// in both columns.

/** Time to first token of one account while another does its worst; throws when a request of the first is refused. */
export async function benchAttacks({ only, rounds, seconds }: AttackBench): Promise<void> {
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
  const { origin } = new URL(arm.url);
  const rss = (): number => residentMebibytes(arm.processIds());

  async function firstTokens(): Promise<number[]> {
    const times: number[] = [];
    const key = newKey(folder, "served");
    const small = buildBody({ chunks: 2, intervalMs: 1 });
    const large = buildBody({ chunks: 2, intervalMs: 1 }, "All work and no play. ".repeat(5_000));
    const endMs = performance.now() + seconds * 1_000;
    for (let request = 0; performance.now() < endMs; request += 1) {
      const body = request % 4 === 3 ? large : small;
      const served = { ...arm, key };
      times.push((await runStream(served, body, { agent, measure: true })).firstMs);
      // A rate of 600 a minute, and some air.
      await sleep(110);
    }
    return times;
  }

  async function under(attack: Attack): Promise<{ times: number[]; peak: number }> {
    const program = fileURLToPath(new URL("attack-child.ts", import.meta.url));
    const values = [program, attack.name, origin, newKey(folder, attack.name)];
    const child = spawn(process.execPath, values, { stdio: ["pipe", "ignore", "inherit"] });
    const left = once(child, "exit");
    let peak = 0;
    const watch = setInterval(() => (peak = Math.max(peak, rss())), 100);
    try {
      await sleep(1_000);
      return { times: await firstTokens(), peak };
    } finally {
      child.stdin.end();
      clearInterval(watch);
      await left;
    }
  }

  await firstTokens();
  const table = [];
  for (const attack of attacks.filter(({ name }) => only === null || name === only)) {
    const [quiet, attacked]: [number[], number[]] = [[], []];
    let peak = 0;
    for (let round = 0; round < rounds; round += 1) {
      quiet.push(...(await firstTokens()));
      const result = await under(attack);
      attacked.push(...result.times);
      peak = Math.max(peak, result.peak);
    }
    const figure = (times: readonly number[]): string =>
      `${percentile(times, 0.5).toFixed(1)} / ${percentile(times, 0.99).toFixed(1)}`;
    table.push({
      attack: attack.name,
      "quiet, TTFT p50 / p99 ms": figure(quiet),
      "under attack": figure(attacked),
      requests: String(attacked.length),
      "RSS MiB, most": peak.toFixed(0),
      "RSS MiB, after": rss().toFixed(0),
    });
    process.stderr.write(
      `${attack.name}: ${figure(quiet)} -> ${figure(attacked)}, ${peak.toFixed(0)} MiB\n`,
    );
  }
  process.stdout.write(markdown(table));
  await sleep(35_000);
  process.stdout.write(`\nRSS half a minute after the last attack: ${rss().toFixed(0)} MiB\n`);
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
