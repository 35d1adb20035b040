import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPostgres, startPostgres } from "../tests/ledger/postgres-server.ts";
import { programPath } from "./children.ts";
import type { LedgerOrder, RoundFigures } from "./ledger-child.ts";
import { stepNames } from "./ledger-steps.ts";
import { markdown } from "./markdown.ts";
import { serverIdOf } from "./postgres-arm.ts";
import { spread } from "./report.ts";

// What the steps of a request cost before and now, each checkout in a process and a ledger of its own, round by round in
// turns: the CPU of all threads, and of PostgreSQL's server. What else a machine does moves times, and this hardly.

/** What is compared, how often, and how many requests each of 32 callers makes in a round. */
export interface LedgerComparison {
  /** The folder of another checkout. */
  readonly against: string;
  readonly rounds: number;
  readonly requests: number;
  readonly stores: readonly string[];
}

interface Arm {
  readonly name: string;
  readonly child: ChildProcess;
  readonly rounds: RoundFigures[];
}

/** Compares in turns, and prints a table for each store. */
export async function compareLedgers(comparison: LedgerComparison): Promise<void> {
  for (const store of comparison.stores) {
    if (store === "postgres" && findPostgres() === null)
      process.stdout.write("PostgreSQL is not installed: that store is left out\n");
    else await compareOn(store, comparison);
  }
}

async function compareOn(
  store: string,
  { against, requests, rounds }: LedgerComparison,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-bench-ledger-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const server = store === "sqlite" ? null : stack.use(await startPostgres({ fsync: true }));
  const here = programPath("..");
  const arms: Arm[] = [];
  for (const [name, checkout, policies] of [
    ["before", against, false],
    ["now", here, false],
    ["now, with policies", here, true],
  ] as const) {
    const file = `arm_${String(arms.length)}`;
    const child = fork(programPath("ledger-child.ts"));
    stack.defer(() => endOf(child));
    const order: LedgerOrder = {
      ...{ checkout, policies, callers: 32, accounts: 32 },
      address: (await server?.createDatabase(file)) ?? join(folder, `${file}.sqlite`),
      serverId: server === null ? null : serverIdOf(server),
    };
    child.send(order);
    await once(child, "message");
    arms.push({ name, child, rounds: [] });
  }
  for (let round = 0; round <= rounds; round += 1)
    for (const { child, name, rounds: measured } of round % 2 === 0 ? arms : arms.toReversed()) {
      process.stderr.write(`${store}, round ${String(round)} of ${String(rounds)}: ${name}\n`);
      child.send(requests);
      const [figures] = (await once(child, "message")) as [RoundFigures];
      // The first round makes the code hot.
      if (round > 0) measured.push(figures);
    }
  process.stdout.write(
    `\n${store}, CPU in microseconds: median (range), and times that before\n\n`,
  );
  process.stdout.write(markdown(arms.map((arm) => describe(arm, arms[0]?.rounds ?? []))));
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.disconnect();
  await ended;
}

function describe({ name, rounds }: Arm, before: readonly RoundFigures[]): Record<string, string> {
  const cell = (figure: (figures: RoundFigures) => number): string => {
    const ratios = rounds.map((round, at) => figure(round) / figure(before[at] ?? round));
    const figures = spread(rounds.map(figure), 1);
    return rounds === before ? figures : `${figures}, x ${spread(ratios, 2)}`;
  };
  const steps = stepNames.map((step) => [step, cell((figures) => figures[step])]);
  const all = cell((figures) => stepNames.reduce((sum, step) => sum + figures[step], 0));
  return { arm: name, ...Object.fromEntries(steps), "all three": all };
}
