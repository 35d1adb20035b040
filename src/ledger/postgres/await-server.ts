import { setTimeout as delay } from "node:timers/promises";
import { limits } from "../../limits.ts";
import { StoreFault } from "../store-fault.ts";
import { mayPass } from "./fault.ts";

/** How a start waits for a server that is not up yet, as when both are started together. */
export interface StartWait {
  readonly ms: number;
  /** Ends the waiting, which then rejects. */
  readonly signal?: AbortSignal;
  /** Called at the first fault, at each with other words, and every `limits.ledgerStartReportMs`. */
  readonly onWaiting: (waiting: { readonly reason: string; readonly leftMs: number }) => void;
}

/** Tries until `work` resolves; rejects where its fault cannot pass by waiting, and after `startWait.ms`. */
export async function retryUntilServerIsUp<Value>(
  work: () => Promise<Value>,
  startWait: StartWait,
): Promise<Value> {
  const until = performance.now() + startWait.ms;
  let reported = { reason: "", atMs: 0 };
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const now = performance.now();
      if (!(error instanceof StoreFault) || !mayPass(error.cause) || now >= until) throw error;
      if (error.message !== reported.reason || now - reported.atMs >= limits.ledgerStartReportMs) {
        reported = { reason: error.message, atMs: now };
        startWait.onWaiting({ reason: error.message, leftMs: until - now });
      }
    }
    await delay(
      Math.min(limits.ledgerStartTryMs, Math.max(until - performance.now(), 0)),
      undefined,
      startWait.signal === undefined ? {} : { signal: startWait.signal },
    );
  }
}
