import type { Timers } from "../timers.ts";

/** Waits for a time, or until something has ended. */
export function pause(delayMs: number, ended: AbortSignal, timers: Timers): Promise<void> {
  if (ended.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      timers.clear(timer);
      ended.removeEventListener("abort", finish);
      resolve();
    };
    const timer = timers.set(finish, delayMs);
    ended.addEventListener("abort", finish);
  });
}
