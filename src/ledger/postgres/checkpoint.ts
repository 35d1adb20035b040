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
import { unknownAccount } from "../operator-input.ts";
import { numberOf, type Row } from "../row.ts";
import type { Clock, Database, Query } from "./database.ts";
import type { PostgresOperations } from "../store-operations.ts";

const lock = {
  name: "checkpoint-lock",
  text: "select 1 as one from tributary.account where id = $1 for no key update",
};
const find = {
  name: "checkpoint",
  text: `select sequence, hash, balance_nanos, held_nanos, credited_nanos from tributary.checkpoint
    where account_id = $1`,
};
const old = {
  name: "checkpoint-entries",
  text: `select * from tributary.entry where account_id = $1 and sequence > $2 and sequence <= $3
    order by sequence limit $4`,
};
const cut = {
  name: "checkpoint-cut",
  text: cutStatement({
    entries: "tributary.entry",
    accountId: "$1",
    afterSequence: "$2",
    beforeMs: "$3",
    nowMs: "coalesce($4, tributary.now_ms())",
    rowsMax: "$5",
  }),
};
const keep = {
  name: "checkpoint-keep",
  text: `insert into tributary.checkpoint (account_id, sequence, hash, balance_nanos, held_nanos, credited_nanos, at_ms)
    values ($1, $2, $3, $4, $5, $6, coalesce($7, tributary.now_ms()))
    on conflict (account_id) do update set sequence = excluded.sequence, hash = excluded.hash,
      balance_nanos = excluded.balance_nanos, held_nanos = excluded.held_nanos,
      credited_nanos = excluded.credited_nanos, at_ms = excluded.at_ms`,
};
const remove = {
  name: "checkpoint-remove",
  text: "delete from tributary.entry where account_id = $1 and sequence <= $2",
};
const confirm = {
  name: "checkpoint-confirm",
  text: `select tributary.move($1, 'checkpoint', 0, 0, 0, 'operator', null, $2, coalesce($3, tributary.now_ms()))`,
};

/** Replaces old entries by what they add up to, and has the chain confirm it; under the account's lock. */
export function openCheckpoint(database: Database, clock: Clock): PostgresOperations["checkpoint"] {
  return ({ accountId, beforeMs, entriesMax }) =>
    database.transaction(async (query) => {
      if ((await query(lock, accountId)).length === 0) throw unknownAccount(accountId);
      const [row] = await query(find, accountId);
      const from = row === undefined ? noCheckpoint : checkpointOf(row);
      const rolled = await readOld(
        query,
        { accountId, beforeMs, ...(entriesMax === undefined ? {} : { entriesMax }) },
        { from: from.sequence, clock },
      );
      // A checkpoint adds an entry itself, so that rolling up one would gain nothing.
      if (rolled.length === 0) return { removed: 0, misdated: 0, done: true };
      const to = rolled.reduce(addEntry, from);
      const { balanceNanos, creditedNanos, hash, heldNanos, sequence } = to;
      const sums = [balanceNanos, heldNanos, creditedNanos];
      await query(keep, accountId, sequence, Buffer.from(hash), ...sums, clock());
      await query(remove, accountId, sequence);
      await query(confirm, accountId, checkpointNote(to), clock());
      return { removed: rolled.length, misdated: countMisdated(rolled, beforeMs), done: false };
    });
}

/** The entries that one step rolls up; none where fewer than two are old. */
async function readOld(
  query: Query,
  { accountId, beforeMs, entriesMax }: CheckpointOrder,
  { clock, from }: { readonly clock: Clock; readonly from: number },
): Promise<readonly Row[]> {
  const max = entriesMax ?? limits.checkpointEntriesMax;
  // All entries of a large account are read only where the first `max` are not old.
  for (const rowsMax of entriesMax === undefined ? [max, null] : [max]) {
    const [row] = await query(cut, accountId, from, beforeMs, clock(), rowsMax);
    const last = row === undefined ? 0 : numberOf(row, "sequence");
    if (last >= from + 2) return query(old, accountId, from, last, max);
  }
  return [];
}
