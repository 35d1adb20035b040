import type { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import { checkpointNote } from "../journal.ts";
import {
  addEntry,
  checkpointOf,
  type CheckpointOrder,
  countMisdated,
  cutStatement,
  noCheckpoint,
} from "../roll-up.ts";
import type { StoreOperations } from "../store-operations.ts";
import { idOf, numberOf, type Row } from "../row.ts";
import type { Accounts } from "./accounts.ts";
import { getRow } from "./get-row.ts";

/** Replaces old entries by what they add up to, and has the chain confirm it. */
export function openCheckpoint(
  database: DatabaseSync,
  accounts: Accounts,
): StoreOperations["checkpoint"] {
  const find = database.prepare(
    "select sequence, hash, balance_nanos, held_nanos, credited_nanos from checkpoint where account_id = ?",
  );
  const readOld = openOldEntries(database);
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
    const from = row === null ? noCheckpoint : checkpointOf(row);
    const rolled = readOld(order, from.sequence, nowMs);
    // A checkpoint adds an entry itself, so that rolling up one would gain nothing.
    if (rolled.length === 0) return { removed: 0, misdated: 0, done: true };
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
    return { removed: rolled.length, misdated: countMisdated(rolled, beforeMs), done: false };
  };
}

type ReadOldEntries = (
  order: CheckpointOrder,
  afterSequence: number,
  nowMs: number,
) => readonly Row[];

/** The entries that one step rolls up; none where fewer than two are old. */
function openOldEntries(database: DatabaseSync): ReadOldEntries {
  const read = database.prepare(
    "select * from entry where account_id = ? and sequence > ? and sequence <= ? order by sequence limit ?",
  );
  const cut = database.prepare(
    cutStatement({
      entries: "entry",
      accountId: "?1",
      afterSequence: "?2",
      beforeMs: "?3",
      nowMs: "?4",
      rowsMax: "?5",
    }),
  );
  return ({ accountId, beforeMs, entriesMax }, afterSequence, nowMs) => {
    const max = entriesMax ?? limits.checkpointEntriesMax;
    // All entries of a large account are read only where the first `max` are not old.
    for (const rowsMax of entriesMax === undefined ? [max, -1] : [max]) {
      const row = getRow(cut, accountId, afterSequence, beforeMs, nowMs, rowsMax);
      const last = row === null ? 0 : numberOf(row, "sequence");
      if (last >= afterSequence + 2) return read.all(accountId, afterSequence, last, max);
    }
    return [];
  };
}
