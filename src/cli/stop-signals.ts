import { systemTimers, type Timers } from "../timers.ts";
import type { Shell } from "./command.ts";

/** What SIGTERM and Ctrl-C tell a service. */
export interface StopSignals {
  /** Aborted by the first one. */
  readonly signal: AbortSignal;
  /** Begins the end as the first signal does. */
  stop(): void;
  /** Resolves with the first one. */
  readonly first: Promise<unknown>;
  /** Waits after the first one; the next one ends it. */
  pause(ms: number): Promise<void>;
}

/**
 * Watches for signals until the process ends, also while it says its last line: an impatient one must not kill it. A
 * Ctrl-C that finds no pause after the first signal calls `leave`.
 */
export function watchStopSignals(
  shell: Pick<Shell, "onSignal">,
  leave: () => void,
  timers: Timers = systemTimers,
): StopSignals {
  const first = Promise.withResolvers<unknown>();
  const controller = new AbortController();
  let endPause: (() => void) | null = null;
  const stop = (signal: string | null = null): void => {
    controller.abort();
    first.resolve(signal);
  };
  shell.onSignal((signal) => {
    if (!controller.signal.aborted) stop(signal);
    else if (endPause !== null) endPause();
    else if (signal === "SIGINT") leave();
  });
  return {
    signal: controller.signal,
    stop: () => stop(),
    first: first.promise,
    pause: (ms) =>
      new Promise((resolve) => {
        const timer = timers.set(() => endPause?.(), ms);
        endPause = () => {
          endPause = null;
          timers.clear(timer);
          resolve();
        };
      }),
  };
}
