import type { Timers } from "../timers.ts";

/** What a promise resolves with, or "late": the promise goes on by itself. */
export async function withinMs<Value>(
  promise: Promise<Value>,
  waitMs: number,
  timers: Timers,
): Promise<Value | "late"> {
  let timer: unknown;
  const late = new Promise<"late">((resolveLate) => {
    timer = timers.set(() => {
      resolveLate("late");
    }, waitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timers.clear(timer);
  }
}
