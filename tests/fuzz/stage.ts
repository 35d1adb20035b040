import type { Pool } from "undici";
import type { ScriptedDeployment } from "../doubles/scripted-deployment.ts";

/** What a kind of nonsense is sent with, and to. */
export interface Stage {
  readonly url: string;
  /** Connections to the service, reused. */
  readonly pool: Pool;
  readonly key: string;
  readonly deployment: ScriptedDeployment;
  readonly random: () => number;
  /** What must not happen; the first hundred are kept. */
  readonly report: (problem: string) => void;
}

/** How many answers of each kind came; for the reader of the run, who sees that both good and bad ones did. */
export type Tally = Map<string, number>;

/** Does something `runs` times, `atOnce` at a time. */
export async function repeat(
  runs: number,
  atOnce: number,
  run: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < runs) {
      next += 1;
      await run(next - 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Counts one more. */
export function count(tally: Tally, kind: string): void {
  tally.set(kind, (tally.get(kind) ?? 0) + 1);
}

/** One of several, by chance. */
export function pick<Value>(values: readonly Value[], random: () => number): Value {
  const value = values[Math.floor(random() * values.length)];
  if (value === undefined) throw new Error("nothing to pick from");
  return value;
}
