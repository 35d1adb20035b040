import type { Timers } from "../../src/timers.ts";

/** Timers and a clock that stand still until a test moves them. */
export interface ManualTimers extends Timers {
  readonly monotonicMs: () => number;
  /** Timers that wait. */
  readonly waiting: number;
  /** The delays with which the timers that wait were set, in milliseconds. */
  readonly delays: readonly number[];
  /** Moves the clock, calling what becomes due on the way, in order. */
  advance(ms: number): void;
}

/** Opens a clock at 0. */
export function openManualTimers(): ManualTimers {
  interface Waiting {
    readonly dueMs: number;
    readonly delayMs: number;
    readonly callback: () => void;
  }
  const all = new Set<Waiting>();
  let nowMs = 0;
  return {
    monotonicMs: () => nowMs,
    get waiting() {
      return all.size;
    },
    get delays() {
      return [...all].map(({ delayMs }) => delayMs);
    },
    set(callback, delayMs) {
      const waiting = { dueMs: nowMs + delayMs, delayMs, callback };
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
