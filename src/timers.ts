/** Timers, so that tests and simulations need not wait. */
export interface Timers {
  set(callback: () => void, delayMs: number): unknown;
  clear(timer: unknown): void;
}

/** The timers of this process. */
export const systemTimers: Timers = {
  set: (callback, delayMs) => setTimeout(callback, delayMs),
  clear(timer) {
    clearTimeout(timer as NodeJS.Timeout | undefined);
  },
};

/** The same, but a process does not stay for them. */
export const quietTimers: Timers = {
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (timer) => systemTimers.clear(timer),
};
