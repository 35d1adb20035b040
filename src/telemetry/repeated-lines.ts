import type { Timers } from "../timers.ts";

/** Lines that a caller without a key can cause any number of: one is written a second, the others are counted. */
export interface RepeatedLines extends Disposable {
  /** Whether this one is to be written. */
  isFirst(outcome: string): boolean;
}

const windowMs = 1_000;

/** `tellRest` hears of each second in which more than one came. Disposing it tells what it still knows. */
export function openRepeatedLines(
  tellRest: (outcome: string, count: number) => void,
  timers: Timers,
): RepeatedLines {
  const windows = new Map<string, { count: number; readonly timer: unknown }>();
  function end(outcome: string): void {
    const count = windows.get(outcome)?.count ?? 0;
    windows.delete(outcome);
    if (count > 0) tellRest(outcome, count);
  }
  return {
    isFirst(outcome) {
      const window = windows.get(outcome);
      if (window !== undefined) {
        window.count += 1;
        return false;
      }
      windows.set(outcome, { count: 0, timer: timers.set(() => end(outcome), windowMs) });
      return true;
    },
    [Symbol.dispose]() {
      for (const [outcome, { timer }] of windows) {
        timers.clear(timer);
        end(outcome);
      }
    },
  };
}
