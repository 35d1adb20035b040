import type { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import {
  type Checkpoint,
  chainHash,
  checkpointNote,
  type EntryKind,
  firstHead,
} from "../journal.ts";
import type { StoreOperations } from "../operations.ts";
import { OperatorError } from "../operator-error.ts";
import { bigOf, bytesOf, idOf, numberOf, type Row, textOf, textOrNullOf } from "../row.ts";
import type { Accounts } from "./accounts.ts";
import { getRow } from "./get-row.ts";

const nothing: Checkpoint = {
  sequence: 0,
  hash: firstHead,
  balanceNanos: 0n,
  heldNanos: 0n,
  creditedNanos: 0n,
};

/** Replaces old entries by what they add up to, and has the chain confirm it. */
export function openCheckpoint(
  database: DatabaseSync,
  accounts: Accounts,
): StoreOperations["checkpoint"] {
  const find = database.prepare(
    "select sequence, hash, balance_nanos, held_nanos, credited_nanos from checkpoint where account_id = ?",
  );
  const old = database.prepare(
    "select * from entry where account_id = ? and sequence > ? order by sequence limit ?",
  );
  const keep = database.prepare(
    `insert into checkpoint (account_id, sequence, hash, balance_nanos, held_nanos, credited_nanos, at_ms)
     values (?, ?, ?, ?, ?, ?, ?)
     on conflict (account_id) do update set sequence = excluded.sequence, hash = excluded.hash,
       balance_nanos = excluded.balance_nanos, held_nanos = excluded.held_nanos,
       credited_nanos = excluded.credited_nanos, at_ms = excluded.at_ms`,
  );
  const remove = database.prepare("delete from entry where account_id = ? and sequence <= ?");
  return (order, nowMs) => {
    const { accountId, beforeMs } = order;
    const row = getRow(find, accountId);
    const from = row === null ? nothing : checkpointOf(row);
    const rows = old.all(accountId, from.sequence, limits.checkpointEntriesMax);
    const newer = rows.findIndex((entry) => numberOf(entry, "at_ms") >= beforeMs);
    const rolled = newer === -1 ? rows : rows.slice(0, newer);
    // The checkpoint is an entry itself: for one there would be nothing gained.
    if (rolled.length < 2) return { removed: 0, done: true };
    const to = rolled.reduce(addEntry, from);
    keep.run(
      accountId,
      to.sequence,
      to.hash,
      to.balanceNanos,
      to.heldNanos,
      to.creditedNanos,
      nowMs,
    );
    remove.run(accountId, to.sequence);
    accounts.move(
      idOf({ id: accountId }, "id", "acct_"),
      {
        kind: "checkpoint",
        balanceDeltaNanos: 0n,
        heldDeltaNanos: 0n,
        runningDelta: 0,
        actor: "operator",
        requestId: null,
        note: checkpointNote(to),
      },
      nowMs,
    );
    return { removed: rolled.length, done: rolled.length < limits.checkpointEntriesMax };
  };
}

function addEntry(sum: Checkpoint, row: Row): Checkpoint {
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
