import { readlinkSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";

/**
 * Lowers the priority of the thread that calls: where cores are scarce, the event loop and the ledger go first. Linux knows
 * threads by ids of their own, which only this folder tells; elsewhere all threads stay equal.
 */
export function yieldToStreams(): void {
  try {
    const threadId = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    const { PRIORITY_BELOW_NORMAL, PRIORITY_LOW } = constants.priority;
    setPriority(threadId, Math.min(getPriority() + PRIORITY_BELOW_NORMAL, PRIORITY_LOW));
  } catch {
    // Another system, or one that hides /proc: the service is right without it, only less even.
  }
}
