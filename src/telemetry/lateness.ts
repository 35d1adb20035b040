import type { Timers } from "../timers.ts";

const periodMs = 20;

/**
 * Observes every 20 ms how many seconds late a timer ran: what keeps the event loop busy keeps every stream waiting. The
 * monitor of node:perf_hooks is reset by each reader, so that two readers would take from each other.
 */
export function watchLateness(
  observe: (seconds: number) => void,
  parts: { readonly monotonicMs: () => number; readonly timers: Timers },
): Disposable {
  const { monotonicMs, timers } = parts;
  let timer: unknown = null;
  function wait(): void {
    const dueMs = monotonicMs() + periodMs;
    timer = timers.set(() => {
      observe(Math.max(monotonicMs() - dueMs, 0) / 1_000);
      wait();
    }, periodMs);
  }
  wait();
  return { [Symbol.dispose]: () => timers.clear(timer) };
}
