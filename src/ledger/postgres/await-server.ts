import { setTimeout as delay } from "node:timers/promises";
import { StoreFault } from "../store-fault.ts";
import { isNotUpYet } from "./fault.ts";

/** How a start waits for a server that is not up yet, as when both are started together. */
export interface Patience {
  readonly ms: number;
  /** Ends the waiting; what was begun then rejects. */
  readonly signal?: AbortSignal;
  /** At the first failure, at every other one, and from time to time. */
  readonly onWaiting: (waiting: { readonly reason: string; readonly leftMs: number }) => void;
}

const tryAgainMs = 500;
const tellAgainMs = 10_000;

/** Tries until it works, until waiting cannot help, or until the patience is over. */
export async function whenServerIsUp<Value>(
  work: () => Promise<Value>,
  patience: Patience,
): Promise<Value> {
  const until = performance.now() + patience.ms;
  let told = { reason: "", atMs: 0 };
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const now = performance.now();
      if (!(error instanceof StoreFault) || !isNotUpYet(error.cause) || now >= until) throw error;
      if (error.message !== told.reason || now - told.atMs >= tellAgainMs) {
        told = { reason: error.message, atMs: now };
        patience.onWaiting({ reason: error.message, leftMs: until - now });
      }
    }
    await delay(
      Math.min(tryAgainMs, Math.max(until - performance.now(), 0)),
      undefined,
      patience.signal === undefined ? {} : { signal: patience.signal },
    );
  }
}
