import { readlinkSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";

// What a thread for bodies loads first: `body-worker.ts` and all that it imports take longer than most bodies do.

yieldToStreams();
await import("./body-worker.ts");

/**
 * Where cores are scarce, the event loop and the ledger go first. Linux knows threads by ids of their own, which only
 * this folder tells; elsewhere all threads stay equal.
 */
function yieldToStreams(): void {
  try {
    const threadId = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    const { PRIORITY_BELOW_NORMAL, PRIORITY_LOW } = constants.priority;
    setPriority(threadId, Math.min(getPriority() + PRIORITY_BELOW_NORMAL, PRIORITY_LOW));
  } catch {
    // Another system, or one that hides /proc: the service is right without it, only less even.
  }
}
