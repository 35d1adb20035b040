import type { Timers } from "../../src/timers.ts";

/** Timers and a clock that stand still until a test moves them. */
export interface ManualTimers extends Timers {
  readonly monotonicMs: () => number;
  /** Timers that wait. */
  readonly waiting: number;
  /** Moves the clock, calling what becomes due on the way, in order. */
  advance(ms: number): void;
}

/** Opens a clock at 0. */
export function openManualTimers(): ManualTimers {
  interface Waiting {
    readonly dueMs: number;
    readonly callback: () => void;
  }
  const all = new Set<Waiting>();
  let nowMs = 0;
  return {
    monotonicMs: () => nowMs,
    get waiting() {
      return all.size;
    },
    set(callback, delayMs) {
      const waiting = { dueMs: nowMs + delayMs, callback };
      all.add(waiting);
      return waiting;
    },
    clear: (timer) => void all.delete(timer as Waiting),
    advance(ms) {
      const endMs = nowMs + ms;
      for (;;) {
        const due = [...all].filter((one) => one.dueMs <= endMs);
        const [next] = due.toSorted((one, other) => one.dueMs - other.dueMs);
        if (next === undefined) break;
        all.delete(next);
        nowMs = Math.max(nowMs, next.dueMs);
        next.callback();
      }
      nowMs = endMs;
    },
  };
}
