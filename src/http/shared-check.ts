import type { Failure } from "../failure.ts";
import { failureFromUnknown } from "../failure.ts";
import type { Timers } from "../timers.ts";

/** Resolves with the failure of a check that its callers share; null: it is well. Never rejects. */
export type SharedCheck = () => Promise<Failure | null>;

/** How long an outcome counts, how long a check may take, and the failure of one that takes longer. */
export interface SharedCheckParts {
  readonly heldMs: number;
  readonly timeoutMs: number;
  readonly silence: () => Failure;
  readonly monotonicMs: () => number;
  readonly timers: Timers;
}

/**
 * Shares one check between any number of callers: it runs once at a time, and its outcome counts for `heldMs`. One that
 * does not end is not run again before it does; callers get `silence()` meanwhile.
 */
export function shareCheck(
  check: (signal: AbortSignal) => Promise<void>,
  parts: SharedCheckParts,
): SharedCheck {
  const { heldMs, monotonicMs, timeoutMs, silence, timers } = parts;
  let last: { readonly outcome: Failure | null; readonly atMs: number } | null = null;
  let underWay: Promise<Failure | null> | null = null;

  function begin(): Promise<Failure | null> {
    const late = new AbortController();
    const answer = Promise.withResolvers<Failure | null>();
    const timer = timers.set(() => {
      const failure = silence();
      answer.resolve(failure);
      late.abort(failure);
    }, timeoutMs);
    const settle = (outcome: Failure | null): void => {
      timers.clear(timer);
      underWay = null;
      last = { outcome, atMs: monotonicMs() };
      answer.resolve(outcome);
    };
    check(late.signal).then(
      () => settle(null),
      (error: unknown) => settle(late.signal.aborted ? silence() : failureFromUnknown(error)),
    );
    return answer.promise;
  }

  return () => {
    if (last !== null && monotonicMs() - last.atMs < heldMs) return Promise.resolve(last.outcome);
    underWay ??= begin();
    return underWay;
  };
}
