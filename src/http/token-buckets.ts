import { createHash } from "node:crypto";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** Bounds how often one key looks at its account and its receipts, which count for no rate of the ledger. */
export interface TokenBuckets {
  /** Before the ledger is asked. Throws `rate_limited`. */
  take(presentedKey: string): void;
}

// Above this many keys, those that have not looked lately are forgotten: a caller may present any number of wrong ones.
const keysRemembered = 10_000;

/** A token bucket for each key: full, it holds the looks of a burst; it fills again at an even pace. */
export function openTokenBuckets(monotonicMs: () => number): TokenBuckets {
  const emptyAtMs = new Map<string, number>();
  const eachMs = 1_000 / limits.looksPerSecond;
  const fullMs = limits.looksAtOnce * eachMs;

  function forgetFull(nowMs: number): void {
    for (const [key, atMs] of emptyAtMs) if (atMs <= nowMs) emptyAtMs.delete(key);
  }

  return {
    take(presentedKey) {
      const nowMs = monotonicMs();
      // No key is kept in memory for this.
      const key = createHash("sha256").update(presentedKey).digest("base64");
      const usedUntilMs = Math.max(emptyAtMs.get(key) ?? 0, nowMs) + eachMs;
      if (usedUntilMs - nowMs > fullMs) throw tooOften();
      if (emptyAtMs.size >= keysRemembered) forgetFull(nowMs);
      emptyAtMs.set(key, usedUntilMs);
    },
  };
}

function tooOften(): Failure {
  return new Failure(
    "rate_limited",
    `This key looks at its account more than ${String(limits.looksPerSecond)} times a second. Wait a second, or ask less often.`,
    { retryAfterSeconds: 1 },
  );
}
