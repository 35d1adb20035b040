import { numberOrNullOf, type Row, textOf, textOrNullOf } from "./row.ts";
import type { JournalVerification } from "./verify-journal.ts";

// An entry and what was kept of it are written together, and neither changes; a checkpoint removes the entry alone.
const copies = `select kept.account_id, kept.sequence, null as request_id from kept_credit kept
    left join checkpoint on checkpoint.account_id = kept.account_id
    left join entry on entry.account_id = kept.account_id and entry.sequence = kept.sequence
    where kept.sequence > coalesce(checkpoint.sequence, 0) and (entry.sequence is null or entry.hash <> kept.hash
      or entry.at_ms <> kept.at_ms or entry.kind <> kept.kind or entry.balance_delta_nanos <> kept.amount_nanos
      or entry.actor <> kept.actor or entry.note is distinct from kept.note
      or entry.reference is distinct from kept.reference or entry.receipt is distinct from kept.receipt)
  union all
  select entry.account_id, entry.sequence, null from entry
    where (entry.reference is not null or entry.receipt is not null) and not exists (select 1 from kept_credit kept
      where kept.account_id = entry.account_id and kept.sequence = entry.sequence)`;

const refunds = `select reservation.account_id, null as sequence, reservation.request_id from reservation
    left join (select account_id, receipt, sum(amount_nanos) as given from kept_credit where receipt is not null
      group by account_id, receipt) refund
      on refund.account_id = reservation.account_id and refund.receipt = reservation.request_id
    where reservation.refunded_nanos <> coalesce(refund.given, 0)
      or reservation.refunded_nanos > coalesce(reservation.charged_nanos, 0)`;

const sources = [
  {
    sql: `${copies} order by 1, 2`,
    code: "reference-differs",
    message: "the entry and what is kept of its reference and receipt disagree",
  },
  {
    sql: `${refunds} order by 1, 3`,
    code: "refund-differs",
    message:
      "what the receipt says was refunded is not what its refunds add up to, or exceeds its charge",
  },
] as const;

/** References and refunds, against the entries and the receipts: rows are read of what disagrees alone. */
export function* readCredits(
  verification: Pick<JournalVerification, "report">,
): Generator<{ readonly sql: string }, void, readonly Row[]> {
  for (const source of sources)
    for (let rows = yield source; rows.length > 0; rows = yield source)
      for (const row of rows)
        verification.report({
          code: source.code,
          account: textOf(row, "account_id"),
          sequence: numberOrNullOf(row, "sequence"),
          request: textOrNullOf(row, "request_id"),
          message: source.message,
        });
}
