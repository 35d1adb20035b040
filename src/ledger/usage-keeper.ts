import type { LedgerAdministration } from "./ledger.ts";
import { limits } from "../limits.ts";
import { pause } from "./pause.ts";
import { systemTimers, type Timers } from "../timers.ts";

/** What the keeper works with. */
export interface UsageKeeperParts {
  readonly telemetry: {
    ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  };
  readonly timers?: Timers;
}

/**
 * Adds up what has ended since the last time, every minute, in small steps with rests between them, so that requests hardly
 * wait for it. Of several processes each may do a step; the store lets one at a time.
 */
export function openUsageKeeper(
  ledger: Pick<LedgerAdministration, "findUnsummed" | "keepUsage">,
  { telemetry, timers = systemTimers }: UsageKeeperParts,
): AsyncDisposable {
  const closing = new AbortController();
  const closed = closing.signal;
  const wait = (delayMs: number): Promise<void> => pause(delayMs, closed, timers);
  async function keepAll(): Promise<void> {
    for (let after: string | null = ""; after !== null && !closed.aborted;) {
      const found = await ledger.findUnsummed(after);
      let waiting = found.accountIds;
      while (waiting.length > 0 && !closed.aborted) {
        const { done, mine } = await ledger.keepUsage(waiting);
        if (!mine) return;
        waiting = waiting.filter((id) => !done.includes(id));
        await wait(limits.usageRestMs);
      }
      after = found.last;
    }
  }
  async function run(): Promise<void> {
    while (!closed.aborted) {
      await wait(limits.usageKeepMs);
      // What could not be added up now is read from receipts until it is.
      if (!closed.aborted)
        await keepAll().catch((cause: unknown) =>
          telemetry.ledgerRetry({ operation: "keepUsage", cause }),
        );
    }
  }
  const turns = run();
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await turns;
    },
  };
}
