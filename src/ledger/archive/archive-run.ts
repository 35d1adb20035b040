import type { ArchivesAdministration } from "../ledger.ts";
import { beginLine } from "./archive-lines.ts";
import type { ArchiveFile } from "./archive-file.ts";

/** What a run has done. */
export interface Archived {
  readonly accounts: number;
  readonly receipts: number;
  readonly entries: number;
}

interface RunParts {
  readonly file: ArchiveFile;
  /** Between two steps, so that requests hardly wait for them. */
  readonly rest: () => Promise<void>;
  /** False: the run ends after the step that is under way; absent: it goes on. */
  readonly goesOn?: () => boolean;
}

/**
 * Archives what ended before a time, an account after another, in small steps: entries are rolled up, usage is added up, and the
 * receipts go into the file, and from the ledger once they are on the disk.
 */
export async function archiveBefore(
  ledger: ArchivesAdministration,
  { accountIds, beforeMs }: { readonly accountIds: readonly string[]; readonly beforeMs: number },
  parts: RunParts,
): Promise<Archived> {
  let [accounts, receipts, entries] = [0, 0, 0];
  for (const accountId of accountIds) {
    const order = { accountId, beforeMs };
    entries += await rollUp(ledger, order, parts);
    await keepUsage(ledger, accountId, parts);
    const removed = await removeReceipts(ledger, order, parts);
    receipts += removed;
    if (removed > 0) accounts += 1;
  }
  return { accounts, receipts, entries };
}

const forever = (): boolean => true;

interface Order {
  readonly accountId: string;
  readonly beforeMs: number;
}

async function rollUp(
  ledger: ArchivesAdministration,
  order: Order,
  { goesOn = forever, rest }: RunParts,
): Promise<number> {
  let entries = 0;
  while (goesOn()) {
    const { done, removed } = await ledger.rollUp(order);
    entries += removed;
    if (done) break;
    await rest();
  }
  return entries;
}

async function keepUsage(
  ledger: ArchivesAdministration,
  accountId: string,
  { goesOn = forever, rest }: RunParts,
): Promise<void> {
  while (goesOn()) {
    const { done, mine } = await ledger.keepUsage([accountId]);
    if (!mine || done.length > 0) return;
    await rest();
  }
}

async function removeReceipts(
  ledger: ArchivesAdministration,
  order: Order,
  { file, goesOn = forever, rest }: RunParts,
): Promise<number> {
  let receipts = 0;
  let part: { readonly after: number; readonly from: string } | null = null;
  while (goesOn()) {
    const { lines, ...batch } = await ledger.readArchivable(order);
    if (lines.length === 0) break;
    const { after, from } = batch;
    const head = part === null ? [beginLine(order.accountId, after, from)] : [];
    await file.append([...head, ...lines]);
    const begun: { readonly after: number; readonly from: string } = part ?? { after, from };
    const done = await ledger.archiveReceipts({
      ...order,
      batch,
      file: { name: file.name, ...begun },
    });
    if (done === null) {
      // Another process archives, or a refund came between: the next run goes on from there.
      await file.undo();
      break;
    }
    file.confirm();
    part = begun;
    receipts += done.removed;
    await rest();
  }
  return receipts;
}
