import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { type SharedCheck, shareCheck } from "../../src/http/shared-check.ts";

/** A check over a clock that stands still until it is moved, and answers that are given by hand. */
function open(): {
  readonly check: SharedCheck;
  readonly asked: { readonly signal: AbortSignal; readonly answer: PromiseWithResolvers<void> }[];
  readonly pass: (ms: number) => void;
} {
  let nowMs = 0;
  const waiting = new Map<() => void, number>();
  const asked: { signal: AbortSignal; answer: PromiseWithResolvers<void> }[] = [];
  const check = shareCheck(
    (signal) => {
      const answer = Promise.withResolvers<void>();
      asked.push({ signal, answer });
      return answer.promise;
    },
    {
      heldMs: 1_000,
      timeoutMs: 2_000,
      silence: () => new Failure("overloaded", "silent"),
      monotonicMs: () => nowMs,
      timers: {
        set: (callback, delayMs) => {
          waiting.set(callback, nowMs + delayMs);
          return callback;
        },
        clear: (timer) => void waiting.delete(timer as () => void),
      },
    },
  );
  return {
    check,
    asked,
    pass(ms) {
      nowMs += ms;
      for (const [callback, atMs] of waiting)
        if (atMs <= nowMs) {
          waiting.delete(callback);
          callback();
        }
    },
  };
}

describe("a shared check", () => {
  it("asks once for all who ask while it is under way, and for a second after its answer", async () => {
    const { asked, check, pass } = open();
    const answers = Array.from({ length: 1_000 }, () => check());
    expect(asked).toHaveLength(1);
    asked[0]?.answer.resolve();
    expect(new Set(await Promise.all(answers))).toEqual(new Set([null]));
    pass(999);
    expect(await check()).toBe(null);
    expect(asked).toHaveLength(1);
    pass(1);
    const again = check();
    expect(asked).toHaveLength(2);
    asked[1]?.answer.reject(new Failure("overloaded", "no room on its disk"));
    expect((await again)?.message).toBe("no room on its disk");
    expect((await check())?.message).toBe("no room on its disk");
    expect(asked).toHaveLength(2);
  });

  it("tells of silence after its patience, at once to those who come later, and asks nothing twice", async () => {
    const { asked, check, pass } = open();
    const first = check();
    pass(2_000);
    expect((await first)?.message).toBe("silent");
    expect(asked[0]?.signal.aborted).toBe(true);
    expect((await check())?.message).toBe("silent");
    pass(60_000);
    expect((await check())?.message).toBe("silent");
    expect(asked).toHaveLength(1);
    asked[0]?.answer.resolve();
    await Promise.resolve();
    expect(await check()).toBe(null);
    expect(asked).toHaveLength(1);
  });

  it("hides what is no Failure", async () => {
    const { asked, check } = open();
    const answer = check();
    asked[0]?.answer.reject(new Error("select secret from ledger"));
    expect((await answer)?.message).toMatch(/^Something went wrong inside the service/);
  });
});
