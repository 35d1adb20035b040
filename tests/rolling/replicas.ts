import { setTimeout as sleep } from "node:timers/promises";
import { type Program, startLivingProgram } from "../cli/start-program.ts";

/** One replica that can be stopped and started again on its port. */
export interface Replica {
  readonly port: number;
  /** The address for operators. */
  readonly operators: string;
  readonly program: Program;
}

/** What a replica is started with. */
export interface ReplicaOrder {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** 0 or absent: any. */
  readonly port?: number;
  /** The first file of another version, which has a listener for callers alone; absent: this version. */
  readonly main?: string;
}

/** How long replicas may live: one that is left behind ends by itself, and the longest run takes less. */
const lifeMs = 1_500_000;

/** Starts a replica. Resolves when it is ready. */
export async function startReplica(order: ReplicaOrder): Promise<Replica> {
  const { environment, folder, main, port = 0 } = order;
  const program = startLivingProgram({
    words: ["serve", "--json"],
    folder,
    environment: { ...environment, TRIBUTARY_PORT: String(port) },
    lifeMs,
    ...(main !== undefined && { main }),
  });
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)"/);
  const [, operators = url] =
    main === undefined
      ? await program.waitFor(/"address":"(http:[^"]+)","event":"operators listening"/)
      : [];
  await until(async () => (await fetch(`${url}/readyz`)).status === 200);
  return { port: Number(new URL(url).port), operators, program };
}

/** Requests for generations that a replica has answered since its start. */
export async function answered(replica: Replica): Promise<number> {
  const text = await (await fetch(`${replica.operators}/metrics`)).text();
  const counts = [...text.matchAll(/^tributary_generations_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Waits for a condition; only what never comes is given up. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 100_000;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`still not: ${String(condition)}`);
    await sleep(50);
  }
}
