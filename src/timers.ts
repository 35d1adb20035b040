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
