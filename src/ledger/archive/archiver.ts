import { limits } from "../../limits.ts";
import { systemTimers, type Timers } from "../../timers.ts";
import type { ArchivesAdministration } from "../ledger.ts";
import { pause } from "../pause.ts";
import { openArchiveFile } from "./archive-file.ts";
import { archiveBefore } from "./archive-run.ts";

/** What the archiver works with. */
export interface ArchiverParts {
  /** How many days receipts stay. */
  readonly days: number;
  readonly folder: string;
  readonly now: () => number;
  readonly telemetry: {
    ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
    lifecycle(event: string, facts: Readonly<Record<string, string | number>>): void;
  };
  readonly timers?: Timers;
}

/** Archives receipts that are older than they stay, every hour, in small steps with rests between them. */
export function openArchiver(
  ledger: ArchivesAdministration,
  { days, folder, now, telemetry, timers = systemTimers }: ArchiverParts,
): AsyncDisposable {
  const closing = new AbortController();
  const closed = closing.signal;
  const wait = (delayMs: number): Promise<void> => pause(delayMs, closed, timers);
  const rest = (): Promise<void> => wait(limits.archiveRestMs);
  const goesOn = (): boolean => !closed.aborted;
  async function archive(): Promise<void> {
    await using file = openArchiveFile(folder, now());
    const accountIds = (await ledger.listAccounts()).map(({ id }) => id);
    const beforeMs = now() - days * 86_400_000;
    const { accounts, receipts } = await archiveBefore(
      ledger,
      { accountIds, beforeMs },
      { file, rest, goesOn },
    );
    if (receipts > 0)
      telemetry.lifecycle("receipts archived", { receipts, accounts, file: file.name });
  }
  async function run(): Promise<void> {
    for (
      let waitMs: number = limits.archiveFirstMs;
      !closed.aborted;
      waitMs = limits.archiveEveryMs
    ) {
      await wait(waitMs);
      if (!closed.aborted)
        await archive().catch((cause: unknown) =>
          telemetry.ledgerRetry({ operation: "archiveReceipts", cause }),
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
