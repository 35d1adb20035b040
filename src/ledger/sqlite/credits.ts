import type { DatabaseSync } from "node:sqlite";
import type { EntryKind } from "../journal.ts";
import type { AccountId, CreditNanos } from "../scalars.ts";

/** What a movement of credit is known by outside, and which request's charge it gives back. */
export interface KnownBy {
  readonly reference: string | null;
  readonly receipt: string | null;
}

/** An entry of credit, chained and ready to be written behind the others. */
export interface CreditEntry extends KnownBy {
  readonly accountId: AccountId;
  readonly sequence: number;
  readonly atMs: number;
  readonly kind: EntryKind;
  readonly amountNanos: CreditNanos;
  readonly actor: string;
  readonly note: string | null;
  readonly hash: Uint8Array;
}

/** Writes entries of credit whose account's row has been changed; the same in SQL: `move_credit` of PostgreSQL. */
export function openCredits(database: DatabaseSync): (entry: CreditEntry) => void {
  const append = database.prepare(
    `insert into entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, request_id,
       reference, receipt, note, hash) values (?, ?, ?, ?, ?, 0, ?, null, ?, ?, ?, ?)`,
  );
  const keep = database.prepare(
    `insert into kept_credit (account_id, sequence, at_ms, kind, amount_nanos, actor, reference, receipt, note, hash,
       balance_nanos, held_nanos)
     select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, balance_nanos, held_nanos from account where id = ?1`,
  );
  const giveBack = database.prepare(
    "update reservation set refunded_nanos = refunded_nanos + ? where request_id = ? and account_id = ?",
  );
  return (entry) => {
    const { accountId, amountNanos, receipt, reference } = entry;
    const values = [
      accountId,
      entry.sequence,
      entry.atMs,
      entry.kind,
      amountNanos,
      entry.actor,
      reference,
      receipt,
      entry.note,
      entry.hash,
    ] as const;
    append.run(...values);
    if (reference === null && receipt === null) return;
    keep.run(...values);
    if (receipt === null) return;
    if (Number(giveBack.run(amountNanos, receipt, accountId).changes) !== 1)
      throw new Error(`ledger: ${accountId} has no receipt ${receipt} to give back`);
  };
}
