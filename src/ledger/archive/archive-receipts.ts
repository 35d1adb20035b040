import { ask, askOne, type Steps } from "../administration/steps.ts";
import { limits } from "../../limits.ts";
import { unknownAccount } from "../operator-input.ts";
import { type Receipt, receiptColumns, receiptOf, receiptToJson } from "../receipt.ts";
import { numberOf, type Row, textOf, textOrNullOf } from "../row.ts";
import { measures } from "../usage/measures.ts";
import { archiveHash, firstArchiveHash } from "./archive-lines.ts";

/** Receipts of one account that ended before a time. */
export interface ArchiveOrder {
  readonly accountId: string;
  readonly beforeMs: number;
}

/** The next receipts to archive, as lines of the file: those behind the entry `after`, up to `sequence`. */
export interface ArchiveBatch {
  readonly lines: readonly string[];
  readonly after: number;
  readonly sequence: number;
  /** Of the chain before these lines, and after them. */
  readonly from: string;
  readonly hash: string;
}

/**
 * The first receipts that are old, rolled up and in the kept sums. Their order is that of the account's entries; one whose clock
 * was ahead goes with the old ones behind it.
 */
export function* readArchivable(
  { accountId, beforeMs }: ArchiveOrder,
  { nowMs }: { readonly nowMs: number },
): Steps<ArchiveBatch> {
  const state = yield* askOne(
    `select coalesce(archive.sequence, 0) as sequence, archive.hash as hash,
       coalesce(progress.summed_sequence, 0) as summed, coalesce(checkpoint.sequence, 0) as rolled
     from tributary.account as account left join tributary.archive as archive on archive.account_id = account.id
       left join tributary.usage_progress as progress on progress.account_id = account.id
       left join tributary.checkpoint as checkpoint on checkpoint.account_id = account.id
     where account.id = $1`,
    accountId,
  );
  if (state === null) throw unknownAccount(accountId);
  const after = numberOf(state, "sequence");
  const rows = yield* ask(
    `select ${receiptColumns} from tributary.reservation where account_id = $1 and state <> 'open'
       and resolved_sequence > $2 and resolved_sequence <= $3
     order by resolved_sequence limit ${String(limits.archiveReceiptsAStep)}`,
    accountId,
    after,
    Math.min(numberOf(state, "summed"), numberOf(state, "rolled")),
  );
  const receipts = oldOf(rows.map(receiptOf), beforeMs, nowMs);
  const lines = receipts.map((receipt) => JSON.stringify(receiptToJson(receipt)));
  const from = textOrNullOf(state, "hash") ?? firstArchiveHash;
  const sequence = receipts.at(-1)?.head.sequence ?? after;
  return { lines, after, sequence, from, hash: lines.reduce(archiveHash, from) };
}

function oldOf(receipts: readonly Receipt[], beforeMs: number, nowMs: number): readonly Receipt[] {
  const young = receipts.findIndex(
    ({ resolvedAtMs }) => (resolvedAtMs ?? 0) >= beforeMs && (resolvedAtMs ?? 0) <= nowMs,
  );
  const before = young === -1 ? receipts : receipts.slice(0, young);
  const last = before.findLastIndex(({ resolvedAtMs }) => (resolvedAtMs ?? Infinity) < beforeMs);
  return before.slice(0, last + 1);
}

/** A batch that is in a file, on the disk. */
export interface ArchivedBatch extends ArchiveOrder {
  readonly batch: Omit<ArchiveBatch, "lines">;
  readonly file: {
    readonly name: string;
    /** Where the file's part of this account begins. */
    readonly after: number;
    readonly from: string;
  };
}

/** Removes the receipts of a batch and keeps what they come to; null: they are no longer what the batch says, and nothing was done. */
export function* archiveReceipts(
  { batch, file, ...order }: ArchivedBatch,
  context: { readonly nowMs: number },
): Steps<{ readonly removed: number } | null> {
  // A refund takes this lock too. That of the account would hold up its admissions.
  yield* ask(
    `select 1 as one from tributary.reservation where account_id = $1 and state <> 'open'
       and resolved_sequence > $2 and resolved_sequence <= $3 for no key update`,
    order.accountId,
    batch.after,
    batch.sequence,
  );
  const { lines, ...now } = yield* readArchivable(order, context);
  if (lines.length === 0 || now.after !== batch.after || now.hash !== batch.hash) return null;
  yield* ask(keepSums, order.accountId, now.after, now.sequence, now.hash);
  yield* ask(
    `delete from tributary.reservation where account_id = $1 and state <> 'open'
       and resolved_sequence > $2 and resolved_sequence <= $3`,
    order.accountId,
    now.after,
    now.sequence,
  );
  yield* ask(
    `insert into tributary.archive_file (account_id, after_sequence, from_hash, sequence, hash, receipts, file, at_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (account_id, after_sequence) do update set sequence = excluded.sequence, hash = excluded.hash,
       receipts = archive_file.receipts + excluded.receipts, at_ms = excluded.at_ms`,
    order.accountId,
    file.after,
    file.from,
    now.sequence,
    now.hash,
    lines.length,
    file.name,
    context.nowMs,
  );
  return { removed: lines.length };
}

const columns = measures.map(({ column }) => column);
const added = measures.map(
  ({ column, nullable }) =>
    `${column} = ${nullable ? `coalesce(kept.${column} + excluded.${column}, kept.${column}, excluded.${column})` : `kept.${column} + excluded.${column}`}`,
);
const keepSums = `insert into tributary.archive as kept (account_id, sequence, hash, until_ms, ${columns.join(", ")})
  select receipt.account_id, $3, $4, max(receipt.resolved_at_ms) + 1, ${measures.map(({ ofReceipts }) => ofReceipts).join(", ")}
  from tributary.reservation as receipt where receipt.account_id = $1 and receipt.state <> 'open'
    and receipt.resolved_sequence > $2 and receipt.resolved_sequence <= $3
  group by receipt.account_id
  on conflict (account_id) do update set sequence = excluded.sequence, hash = excluded.hash,
    until_ms = case when excluded.until_ms > kept.until_ms then excluded.until_ms else kept.until_ms end, ${added.join(", ")}`;

/** What the ledger keeps of an account's part of a file. */
export interface KeptPart {
  readonly accountId: string;
  readonly after: number;
  readonly from: string;
  readonly sequence: number;
  readonly hash: string;
  readonly receipts: number;
  readonly file: string;
}

/** What is kept of an account's part that begins behind an entry; null: nothing was archived from there on. */
export function* findArchive({
  accountId,
  after,
}: {
  readonly accountId: string;
  readonly after: number;
}): Steps<KeptPart | null> {
  const row = yield* askOne(
    `select after_sequence, from_hash, sequence, hash, receipts, file from tributary.archive_file
     where account_id = $1 and after_sequence = $2`,
    accountId,
    after,
  );
  return row === null ? null : keptPartOf(accountId, row);
}

function keptPartOf(accountId: string, row: Row): KeptPart {
  return {
    accountId,
    after: numberOf(row, "after_sequence"),
    from: textOf(row, "from_hash"),
    sequence: numberOf(row, "sequence"),
    hash: textOf(row, "hash"),
    receipts: numberOf(row, "receipts"),
    file: textOf(row, "file"),
  };
}

/** Until when requests ended whose receipts are archived, of one account or of any; null: none are. */
export function* archivedUntil(accountId: string | null): Steps<number | null> {
  const row = yield* askOne(
    `select coalesce(max(until_ms), -1) as until_ms from tributary.archive ${accountId === null ? "" : "where account_id = $1"}`,
    ...(accountId === null ? [] : [accountId]),
  );
  const untilMs = row === null ? -1 : numberOf(row, "until_ms");
  return untilMs < 0 ? null : untilMs;
}
