import { type Checkpoint, chainHash, type EntryKind, firstHead } from "./journal.ts";
import { OperatorError } from "./operator-error.ts";
import { bigOf, bytesOf, numberOf, type Row, textOf, textOrNullOf } from "./row.ts";

/** What stands before the first checkpoint of an account. */
export const noCheckpoint: Checkpoint = {
  sequence: 0,
  hash: firstHead,
  balanceNanos: 0n,
  heldNanos: 0n,
  creditedNanos: 0n,
};

/** The entries' rows that were written before `beforeMs`, from the oldest. */
export function rowsBefore(rows: readonly Row[], beforeMs: number): readonly Row[] {
  const newer = rows.findIndex((entry) => numberOf(entry, "at_ms") >= beforeMs);
  return newer === -1 ? rows : rows.slice(0, newer);
}

/** A checkpoint moved on by one entry, whose row has the columns of the journal's names. */
export function addEntry(sum: Checkpoint, row: Row): Checkpoint {
  const entry = {
    accountId: textOf(row, "account_id"),
    sequence: numberOf(row, "sequence"),
    atMs: numberOf(row, "at_ms"),
    kind: textOf(row, "kind") as EntryKind,
    balanceDeltaNanos: bigOf(row, "balance_delta_nanos"),
    heldDeltaNanos: bigOf(row, "held_delta_nanos"),
    actor: textOf(row, "actor"),
    requestId: textOrNullOf(row, "request_id"),
    note: textOrNullOf(row, "note"),
  };
  const hash = chainHash(sum.hash, entry);
  // What does not verify is not made to disappear.
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
