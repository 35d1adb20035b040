import { limits } from "../limits.ts";
import type { RequestFacts, Telemetry } from "../telemetry/events.ts";

/** A request that failed, as operators see it: nothing of what it said. */
export interface Refusal {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly requestId: string;
  readonly status: number;
  readonly code: string;
  /** The route's pattern; "" for no route. */
  readonly route: string;
  /** null: not known. */
  readonly keyId: string | null;
}

/** The requests of this process that failed last, in memory. */
export interface Refusals {
  /** The same telemetry, which from now on tells of its requests here too. */
  watch<Watched extends Pick<Telemetry, "requestEnded">>(telemetry: Watched): Watched;
  /** Newest first. */
  list(): readonly Refusal[];
}

/** Keeps `limits.refusalsKept` of them. */
export function openRefusals(now: () => number): Refusals {
  const kept: Refusal[] = [];
  let next = 0;
  function note({ failureCode, keyId, requestId, route, status }: RequestFacts): void {
    if (failureCode === null) return;
    kept[next] = { atMs: now(), requestId, status, code: failureCode, route, keyId };
    next = (next + 1) % limits.refusalsKept;
  }
  return {
    watch: (telemetry) => ({
      ...telemetry,
      requestEnded(facts) {
        note(facts);
        telemetry.requestEnded(facts);
      },
    }),
    list: () => [...kept.slice(next), ...kept.slice(0, next)].toReversed(),
  };
}
