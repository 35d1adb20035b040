import { limits } from "../../limits.ts";
import { checkpointNote } from "../journal.ts";
import { unknownAccount } from "../operator-input.ts";
import {
  addEntry,
  checkpointOf,
  type CheckpointOrder,
  type CheckpointStep,
  countMisdated,
  noCheckpoint,
} from "../roll-up.ts";
import { idOf, numberOf, type Row } from "../row.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** Replaces old entries of an account by what they add up to, and has the chain confirm it. */
export function* checkpoint(
  order: CheckpointOrder,
  { nowMs }: { readonly nowMs: number },
): Steps<CheckpointStep> {
  const { accountId, beforeMs } = order;
  const account = "select id from tributary.account where id = $1 for no key update";
  const found = yield* askOne(account, accountId);
  if (found === null) throw unknownAccount(accountId);
  const row = yield* askOne(
    `select sequence, hash, balance_nanos, held_nanos, credited_nanos from tributary.checkpoint
     where account_id = $1`,
    accountId,
  );
  const from = row === null ? noCheckpoint : checkpointOf(row);
  const rolled = yield* readOld(order, from.sequence, nowMs);
  // A checkpoint adds an entry itself, so that rolling up one would gain nothing.
  if (rolled.length === 0) return { removed: 0, misdated: 0, done: true };
  const to = rolled.reduce(addEntry, from);
  yield* ask(
    `insert into tributary.checkpoint (account_id, sequence, hash, balance_nanos, held_nanos, credited_nanos, at_ms)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (account_id) do update set sequence = excluded.sequence, hash = excluded.hash,
       balance_nanos = excluded.balance_nanos, held_nanos = excluded.held_nanos,
       credited_nanos = excluded.credited_nanos, at_ms = excluded.at_ms`,
    accountId,
    to.sequence,
    to.hash,
    to.balanceNanos,
    to.heldNanos,
    to.creditedNanos,
    nowMs,
  );
  const remove = "delete from tributary.entry where account_id = $1 and sequence <= $2";
  yield* ask(remove, accountId, to.sequence);
  const about = {
    accountId: idOf(found, "id", "acct_"),
    amountNanos: 0n,
    actor: "operator",
  } as const;
  const note = checkpointNote(to);
  yield { type: "move", movement: { ...about, kind: "checkpoint", known: null, note } };
  return { removed: rolled.length, misdated: countMisdated(rolled, beforeMs), done: false };
}

/**
 * The last entry that is old, as `sequence`; no row where none is. Entries are in the order of their numbers, and
 * their times only nearly so: one that was written while the clock was ahead would end every checkpoint until then, and
 * one written while it was behind would make all before it look old. So the cut is where most times before it are old and
 * most times after it are not; a time that is still to come counts for neither.
 */
const cut = `select sequence from (
    select sequence, sum(case when at_ms < $3 then 1 when at_ms > $4 then 0 else -1 end)
      over (order by sequence) as old
    from (select sequence, at_ms from tributary.entry where account_id = $1 and sequence > $2
      order by sequence limit $5) as newer
  ) as counted
  where old > 0 order by old desc, sequence limit 1`;

/** The entries that one step rolls up; none where fewer than two are old. */
function* readOld(
  { accountId, beforeMs, entriesMax }: CheckpointOrder,
  after: number,
  nowMs: number,
): Steps<readonly Row[]> {
  const max = entriesMax ?? limits.checkpointEntriesMax;
  // All entries of a large account are read only where the first `max` are not old.
  for (const rowsMax of entriesMax === undefined ? [max, Number.MAX_SAFE_INTEGER] : [max]) {
    const row = yield* askOne(cut, accountId, after, beforeMs, nowMs, rowsMax);
    const last = row === null ? 0 : numberOf(row, "sequence");
    if (last >= after + 2)
      return yield* ask(
        "select * from tributary.entry where account_id = $1 and sequence > $2 and sequence <= $3 order by sequence limit $4",
        accountId,
        after,
        last,
        max,
      );
  }
  return [];
}
