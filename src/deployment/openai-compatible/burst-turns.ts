import { limits } from "../../limits.ts";

/** Gives answers turns that come faster than any engine makes one, so that all of them together leave the event loop to others. */
export interface BurstTurns {
  /** For one answer; `onTurn`: it may be read again. */
  open(onTurn: () => void): Burst;
}

/** How fast one answer comes. */
export interface Burst {
  /** Nothing more is to be read before its turn. */
  readonly waits: boolean;
  /** True: it waits for its turn from now on. */
  add(bytes: number): boolean;
  /** It takes no turn any more. */
  end(): void;
}

/** When the next turn is, and what the time is. */
export interface BurstClock {
  readonly monotonicMs: () => number;
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (callback: () => void) => void;
}

/**
 * Opens the turns of all answers of a deployment: one of them is read in each few turns of the event loop. Left to itself, a
 * socket that has more is read 32 times over, 2 MiB, before any other has its turn.
 */
export function openBurstTurns({ monotonicMs, nextTurn }: BurstClock): BurstTurns {
  /** In the order of their turns. */
  const waiting = new Set<() => void>();
  let scheduled = false;
  let turnsLeft: number = limits.burstTurns;

  function schedule(): void {
    if (scheduled || waiting.size === 0) return;
    scheduled = true;
    nextTurn(pass);
  }

  function pass(): void {
    scheduled = false;
    turnsLeft -= 1;
    if (turnsLeft === 0) take();
    schedule();
  }

  function take(): void {
    turnsLeft = limits.burstTurns;
    for (const turn of waiting) {
      waiting.delete(turn);
      turn();
      return;
    }
  }

  return {
    open(onTurn) {
      let bytes = 0;
      let sinceMs = monotonicMs();
      return {
        get waits() {
          return waiting.has(onTurn);
        },
        // The clock is asked once in so many bytes, not once a read.
        add(more) {
          bytes += more;
          if (bytes < limits.burstBytes) return false;
          bytes = 0;
          const nowMs = monotonicMs();
          const isBurst = nowMs - sinceMs < limits.burstMs;
          sinceMs = nowMs;
          if (!isBurst) return false;
          waiting.add(onTurn);
          schedule();
          return true;
        },
        end: () => void waiting.delete(onTurn),
      };
    },
  };
}
