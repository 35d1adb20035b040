import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { openArchiveFile } from "../ledger/archive/archive-file.ts";
import { type ArchivedPart, readArchive } from "../ledger/archive/archive-lines.ts";
import { archiveBefore } from "../ledger/archive/archive-run.ts";
import type { KeptPart } from "../ledger/archive/archive-receipts.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { CommandError, misuse, type Outcome, type Shell } from "./command.ts";
import { counted } from "./counted.ts";
import { withLedger } from "./open-ledger.ts";
import { readTime } from "./read-time.ts";
import { ensureConfig } from "./settings.ts";

/** `ledger archive` */
export async function archiveLedger(
  shell: Shell,
  options: {
    readonly before: string;
    readonly account?: string | undefined;
    readonly to?: string | undefined;
  },
): Promise<Outcome> {
  const nowMs = Date.now();
  const beforeMs = readTime(options.before, "--before", nowMs);
  if (beforeMs > nowMs - limits.receiptDaysMin * 86_400_000)
    throw misuse(
      `--before must be ${String(limits.receiptDaysMin)} days ago or more, since refunds name receipts: write ${String(limits.receiptDaysMin)}d.`,
    );
  const { archiveDir } = ensureConfig(shell);
  const folder = options.to === undefined ? archiveDir : resolve(shell.folder, options.to);
  return withLedger(shell, async (ledger) => {
    const { ok, problemsTotal } = await ledger.verify([]);
    if (!ok)
      throw new CommandError(
        "not_possible",
        1,
        `The ledger has ${counted(problemsTotal, "problem", "problems")}, so nothing was archived. See: ${shell.programName} verify`,
      );
    const accountIds =
      options.account === undefined
        ? (await ledger.listAccounts()).map(({ id }) => id)
        : [(await ledger.showAccount(options.account)).id];
    await using file = openArchiveFile(folder, nowMs);
    const done = await archiveBefore(ledger, { accountIds, beforeMs }, { file, rest });
    const path = done.receipts === 0 ? null : resolve(folder, file.name);
    return {
      json: { ...done, file: path },
      text:
        path === null
          ? "No receipt is that old and rolled up: nothing was archived.\n"
          : `${counted(done.receipts, "receipt", "receipts")} of ${counted(done.accounts, "account", "accounts")} are in ${path}, and no longer in the ledger.\n`,
    };
  });
}

const rest = (): Promise<void> => sleep(limits.archiveRestMs);

/** `ledger check-archive` */
export async function checkArchive(shell: Shell, names: readonly string[]): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const problems: string[] = [];
    let receipts = 0;
    for (const name of names) {
      const found = await checkFile(ledger, resolve(shell.folder, name));
      receipts += found.receipts;
      problems.push(...found.problems.map((problem) => `${name}: ${problem}`));
    }
    const ok = problems.length === 0;
    return {
      json: { ok, receipts, problems },
      text: ok
        ? `${counted(receipts, "receipt", "receipts")}, as they were archived.\n`
        : problems.map((problem) => `${problem}\n`).join(""),
      exitCode: ok ? 0 : 1,
    };
  });
}

interface Checked {
  readonly receipts: number;
  readonly problems: readonly string[];
}

/** The chain of each account's lines has to be at the kept hash where the kept part ends. */
async function checkFile(ledger: Pick<StoreLedger, "findArchive">, path: string): Promise<Checked> {
  const problems: string[] = [];
  let receipts = 0;
  let last: ArchivedPart | null = null;
  let kept: KeptPart | null = null;
  const close = (): void => {
    if (last === null) return;
    const { accountId, sequence } = last;
    if (kept === null)
      problems.push(`the ledger has archived nothing of ${accountId} from there on`);
    else if (sequence < kept.sequence)
      problems.push(
        `of ${accountId} receipts up to its entry ${String(kept.sequence)} were archived, and are missing after ${String(sequence)}`,
      );
  };
  try {
    const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
    for await (const part of readArchive(lines)) {
      if (part.accountId !== last?.accountId || part.after !== last.after) {
        close();
        kept = await ledger.findArchive({ accountId: part.accountId, after: part.after });
      }
      last = part;
      if (kept !== null && part.sequence <= kept.sequence) receipts += 1;
      if (kept === null || part.sequence !== kept.sequence) continue;
      if (part.hash !== kept.hash || part.from !== kept.from || part.receipts !== kept.receipts)
        problems.push(`receipts of ${part.accountId} are not as they were archived`);
    }
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  close();
  return { receipts, problems };
}
