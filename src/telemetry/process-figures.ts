import { limits } from "../limits.ts";
import type { RequestFacts, Telemetry } from "./events.ts";

/** What a process knows of its requests from memory, since it began. */
export interface ProcessFigures {
  /** Of all its generations, those under way included. */
  readonly outputTokens: number;
  /** How many requests failed, by the code of the failure. */
  readonly failures: Readonly<Record<string, number>>;
  /** Milliseconds to the first output, of the requests that ended of late. */
  readonly firstOutputsMs: readonly number[];
}

/** Counts requests as they end. */
export interface CountedRequests {
  /** The same telemetry, which from now on tells of its requests here too. */
  watch<Watched extends Pick<Telemetry, "requestEnded">>(telemetry: Watched): Watched;
  read(): Omit<ProcessFigures, "outputTokens">;
}

/** Begins to count; of first outputs the last `limits.firstOutputsKept` are kept. */
export function openCountedRequests(monotonicMs: () => number): CountedRequests {
  const failures = new Map<string, number>();
  const firstOutputs: { readonly atMs: number; readonly ms: number }[] = [];
  let next = 0;
  function note({ failureCode, generation }: RequestFacts): void {
    if (failureCode !== null) failures.set(failureCode, (failures.get(failureCode) ?? 0) + 1);
    const ms = generation?.firstOutputMs ?? null;
    if (ms === null) return;
    firstOutputs[next] = { atMs: monotonicMs(), ms };
    next = (next + 1) % limits.firstOutputsKept;
  }
  return {
    watch: (telemetry) => ({
      ...telemetry,
      requestEnded(facts) {
        note(facts);
        telemetry.requestEnded(facts);
      },
    }),
    read() {
      const sinceMs = monotonicMs() - limits.firstOutputsMs;
      return {
        failures: Object.fromEntries(failures),
        firstOutputsMs: firstOutputs.filter(({ atMs }) => atMs >= sinceMs).map(({ ms }) => ms),
      };
    },
  };
}

/** The figures of several processes as one. */
export function addFigures(all: readonly ProcessFigures[]): ProcessFigures {
  const failures: Record<string, number> = {};
  for (const one of all)
    for (const [code, count] of Object.entries(one.failures))
      failures[code] = (failures[code] ?? 0) + count;
  return {
    outputTokens: all.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    failures,
    firstOutputsMs: all.flatMap(({ firstOutputsMs }) => firstOutputsMs),
  };
}
