import type { Failure } from "../failure.ts";
import { failureFromUnknown } from "../failure.ts";
import type { Timers } from "../timers.ts";

/** Asks a question that others ask too; null: it is well. Never rejects. */
export type SharedCheck = () => Promise<Failure | null>;

/** How long an outcome counts, and what stands for an answer that does not come. */
export interface SharedCheckParts {
  readonly heldMs: number;
  readonly patienceMs: number;
  readonly silence: () => Failure;
  readonly monotonicMs: () => number;
  readonly timers: Timers;
}

/**
 * A check that any number may ask for: one question at a time, whose outcome counts for a while. One that does not end
 * is not asked again before it does; whoever asks meanwhile is told of the silence.
 */
export function shareCheck(
  check: (signal: AbortSignal) => Promise<void>,
  parts: SharedCheckParts,
): SharedCheck {
  const { heldMs, monotonicMs, patienceMs, silence, timers } = parts;
  let last: { readonly outcome: Failure | null; readonly atMs: number } | null = null;
  let underWay: Promise<Failure | null> | null = null;

  function begin(): Promise<Failure | null> {
    const late = new AbortController();
    const answer = Promise.withResolvers<Failure | null>();
    const timer = timers.set(() => {
      const failure = silence();
      answer.resolve(failure);
      late.abort(failure);
    }, patienceMs);
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
