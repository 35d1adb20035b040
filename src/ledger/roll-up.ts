import { type Checkpoint, chainHash, firstHead, journalEntryOf } from "./journal.ts";
import { OperatorError } from "./operator-error.ts";
import { bigOf, bytesOf, numberOf, type Row } from "./row.ts";

/** The entries to roll up: those of one account that were written before a time. */
export interface CheckpointOrder {
  readonly accountId: string;
  readonly beforeMs: number;
  /** Entries of one step; absent: `limits.checkpointEntriesMax`, and where these are young, all of the account are looked at. */
  readonly entriesMax?: number;
}

/** What a checkpoint did. */
export interface CheckpointResult {
  readonly removed: number;
  /** Of these, entries with a later time than was asked for: a clock was wrong when they were written. */
  readonly misdated: number;
}

/** How far a checkpoint came; not `done`: there may be more to roll up. */
export interface CheckpointStep extends CheckpointResult {
  readonly done: boolean;
}

/** What stands before the first checkpoint of an account. */
export const noCheckpoint: Checkpoint = {
  sequence: 0,
  hash: firstHead,
  balanceNanos: 0n,
  heldNanos: 0n,
  creditedNanos: 0n,
};

/** How many of the entries' rows have a time that is not before `beforeMs`. */
export function countMisdated(rows: readonly Row[], beforeMs: number): number {
  return rows.filter((entry) => numberOf(entry, "at_ms") >= beforeMs).length;
}

/** A checkpoint moved on by one entry, whose row has the columns of the journal's names. */
export function addEntry(sum: Checkpoint, row: Row): Checkpoint {
  const entry = journalEntryOf(row);
  const hash = chainHash(sum.hash, entry);
  // An entry that was changed stays, for `verify` to find.
  if (entry.sequence !== sum.sequence + 1 || Buffer.compare(hash, bytesOf(row, "hash")) !== 0)
    throw new OperatorError(
      "not_possible",
      `Entry ${String(entry.sequence)} of ${entry.accountId} does not continue the chain, so nothing was rolled up. \`tributary verify\` says what is wrong.`,
    );
  const credited = entry.requestId === null ? entry.balanceDeltaNanos : 0n;
  return {
    sequence: entry.sequence,
    hash,
    balanceNanos: sum.balanceNanos + entry.balanceDeltaNanos,
    heldNanos: sum.heldNanos + entry.heldDeltaNanos,
    creditedNanos: sum.creditedNanos + credited,
  };
}

/** A checkpoint, from columns of its names. */
export function checkpointOf(row: Row): Checkpoint {
  return {
    sequence: numberOf(row, "sequence"),
    hash: bytesOf(row, "hash"),
    balanceNanos: bigOf(row, "balance_nanos"),
    heldNanos: bigOf(row, "held_nanos"),
    creditedNanos: bigOf(row, "credited_nanos"),
  };
}
