import { setTimeout as sleep } from "node:timers/promises";
import { type Program, startLivingProgram } from "../cli/start-program.ts";

/** One replica that can be stopped and started again on its port. */
export interface Replica {
  readonly port: number;
  /** The address for operators. */
  readonly operators: string;
  readonly program: Program;
}

/** Starts a replica; port 0 takes any. Resolves when it is ready. */
export async function startReplica(
  folder: string,
  environment: Readonly<Record<string, string>>,
  port = 0,
): Promise<Replica> {
  const program = startLivingProgram({
    words: ["serve", "--json"],
    folder,
    environment: { ...environment, TRIBUTARY_PORT: String(port) },
    lifeMs: 110_000,
  });
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)"/);
  const [, operators = ""] = await program.waitFor(
    /"address":"(http:[^"]+)","event":"operators listening"/,
  );
  await until(async () => (await fetch(`${url}/readyz`)).status === 200);
  return { port: Number(new URL(url).port), operators, program };
}

/** Requests for generations that a replica has answered since its start. */
export async function answered(replica: Replica): Promise<number> {
  const text = await (await fetch(`${replica.operators}/metrics`)).text();
  const counts = [...text.matchAll(/^tributary_generations_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Waits for a condition; fails after 20 seconds. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`still not: ${String(condition)}`);
    await sleep(50);
  }
}
