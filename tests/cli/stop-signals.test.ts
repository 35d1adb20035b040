import { describe, expect, it } from "vitest";
import { type StopSignals, watchStopSignals } from "../../src/cli/stop-signals.ts";

function open(): {
  readonly stop: StopSignals;
  readonly say: (signal: "SIGINT" | "SIGTERM") => void;
  /** Callbacks of timers that were set and not cleared, by their milliseconds. */
  readonly timers: Map<number, () => void>;
  readonly left: () => number;
} {
  const timers = new Map<number, () => void>();
  let listener: (signal: "SIGINT" | "SIGTERM") => void = () => undefined;
  let left = 0;
  const stop = watchStopSignals(
    {
      onSignal(listen) {
        listener = listen;
        return () => undefined;
      },
    },
    () => void (left += 1),
    {
      set(callback, delayMs) {
        timers.set(delayMs, callback);
        return delayMs;
      },
      clear: (timer) => void timers.delete(timer as number),
    },
  );
  return { stop, say: (signal) => listener(signal), timers, left: () => left };
}

describe("signals to stop", () => {
  it("stop at the first, and a Ctrl-C after it leaves, but no second SIGTERM", async () => {
    const { left, say, stop } = open();
    expect(stop.signal.aborted).toBe(false);
    say("SIGTERM");
    expect(stop.signal.aborted).toBe(true);
    expect(await stop.first).toBe("SIGTERM");
    say("SIGTERM");
    expect(left()).toBe(0);
    say("SIGINT");
    expect(left()).toBe(1);
  });

  it.each(["SIGINT", "SIGTERM"] as const)("%s ends a pause, and leaves nothing", async (signal) => {
    const { left, say, stop, timers } = open();
    say("SIGINT");
    const pause = stop.pause(5_000);
    expect([...timers.keys()]).toEqual([5_000]);
    say(signal);
    await pause;
    expect([timers.size, left()]).toEqual([0, 0]);
    say("SIGINT");
    expect(left()).toBe(1);
  });

  it("a pause ends by itself", async () => {
    const { left, say, stop, timers } = open();
    say("SIGTERM");
    const pause = stop.pause(5_000);
    timers.get(5_000)?.();
    await pause;
    expect([timers.size, left()]).toEqual([0, 0]);
  });
});
