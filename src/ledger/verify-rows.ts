import { journalEntryOf } from "./journal.ts";
import { pricesOf } from "./price-list.ts";
import type { Reading, RowSource } from "./row-source.ts";
import { checkpointOf } from "./roll-up.ts";
import { bigOf, numberOf, numberOrNullOf, type Row, textOf, textOrNullOf } from "./row.ts";
import { chargedEver } from "./usage/charged-ever.ts";
import { verifyUsage } from "./usage/verify-usage.ts";
import type { AccountToVerify, CheckpointToVerify } from "./verify-account.ts";
import type { ReservationToVerify } from "./verify-entry.ts";
import { readCredits } from "./verify-credits.ts";
import {
  type JournalVerification,
  openJournalVerification,
  type VerifyOrder,
  type VerifyReport,
} from "./verify-journal.ts";

/** Spells a column of bytes as hexadecimal digits, in the store's own words. */
export type HexOf = (column: string) => string;

/** Verifies one snapshot of a store. The statements are the same for both stores but for `hexOf`. */
export function* verifyRows(order: VerifyOrder, hexOf: HexOf): Reading<VerifyReport> {
  const verification = openJournalVerification(order);
  yield* readAccounts(verification, hexOf);
  yield* readStrays(verification);
  yield* readCredits(verification);
  yield* readBudgets(verification);
  yield* verifyUsage((account, message) =>
    verification.report({ code: "usage-differs", account, sequence: null, request: null, message }),
  );
  return verification.finish();
}

function* readAccounts(verification: JournalVerification, hexOf: HexOf): Reading<void> {
  const accounts = {
    sql: `select id, balance_nanos, held_nanos, grant_left_nanos, running, entries, ${hexOf("head")} as head from account order by id`,
  };
  const entries = new RowsInOrder(entriesSql(hexOf));
  const readState = openStateReader(hexOf);
  const stray = (row: Row): void =>
    verification.strayEntry(textOf(row, "account_id"), numberOf(row, "sequence"));
  for (;;) {
    const piece = yield accounts;
    if (piece.length === 0) break;
    for (const account of piece) {
      const id = textOf(account, "id");
      // All sources come in the order of the accounts' ids.
      yield* entries.each((accountId) => accountId < id, stray);
      verification.beginAccount({
        id,
        balanceNanos: bigOf(account, "balance_nanos"),
        heldNanos: bigOf(account, "held_nanos"),
        grantLeftNanos: bigOf(account, "grant_left_nanos"),
        running: numberOf(account, "running"),
        entries: numberOf(account, "entries"),
        head: textOf(account, "head"),
        ...(yield* readState(id)),
      });
      yield* entries.each(
        (accountId) => accountId === id,
        (row) => verification.entry(journalEntryOf(row), textOf(row, "hash"), beginning(row)),
      );
      verification.endAccount();
    }
  }
  yield* entries.each(() => true, stray);
}

/** Rows in the order of their accounts, taken from the front. */
class RowsInOrder implements RowSource {
  readonly sql: string;
  private rows: readonly Row[] = [];
  private at = 0;
  private ended = false;

  constructor(sql: string) {
    this.sql = sql;
  }

  /** Takes rows as long as their account is wanted. */
  *each(wanted: (accountId: string) => boolean, take: (row: Row) => void): Reading<void> {
    while (!this.ended) {
      for (; this.at < this.rows.length; this.at += 1) {
        const row = this.rows[this.at];
        if (row === undefined || !wanted(textOf(row, "account_id"))) return;
        take(row);
      }
      this.rows = yield this;
      this.at = 0;
      this.ended = this.rows.length === 0;
    }
  }
}

// Everything of a request's row that its entries must agree with.
const reservationColumns = `reservation.key_id, reservation.state, reservation.input_nanos_per_million,
  reservation.cached_input_nanos_per_million, reservation.output_nanos_per_million, reservation.reserved_nanos,
  reservation.charged_nanos, reservation.input_tokens, reservation.cached_input_tokens, reservation.output_tokens, reservation.admitted_at_ms, reservation.resolved_at_ms, reservation.reserved_sequence,
  reservation.resolved_sequence`;

// A request's row is read once, with the entry that reserved.
function entriesSql(hexOf: HexOf): string {
  return `select entry.account_id, entry.sequence, entry.at_ms, entry.kind, entry.balance_delta_nanos,
      entry.held_delta_nanos, entry.actor, entry.request_id, entry.reference, entry.receipt, entry.note, ${hexOf("entry.hash")} as hash,
      ${reservationColumns}, ${hexOf("reservation.head")} as head
    from entry left join reservation on entry.kind = 'reserve' and reservation.account_id = entry.account_id
      and reservation.request_id = entry.request_id
    order by entry.account_id, entry.sequence`;
}

function beginning(row: Row): ReservationToVerify | null {
  return row["key_id"] === null ? null : reservationOf(row);
}

function reservationOf(row: Row): ReservationToVerify {
  const inputTokens = numberOrNullOf(row, "input_tokens");
  return {
    keyId: textOf(row, "key_id"),
    state: textOf(row, "state") as ReservationToVerify["state"],
    prices: pricesOf(row),
    reservedNanos: bigOf(row, "reserved_nanos"),
    chargedNanos: row["charged_nanos"] === null ? null : bigOf(row, "charged_nanos"),
    usage:
      inputTokens === null
        ? null
        : {
            inputTokens,
            cachedInputTokens: numberOrNullOf(row, "cached_input_tokens") ?? 0,
            outputTokens: numberOrNullOf(row, "output_tokens") ?? 0,
          },
    admittedAtMs: numberOf(row, "admitted_at_ms"),
    resolvedAtMs: numberOrNullOf(row, "resolved_at_ms"),
    reservedSequence: numberOrNullOf(row, "reserved_sequence"),
    resolvedSequence: numberOrNullOf(row, "resolved_sequence"),
    head: textOrNullOf(row, "head"),
  };
}

type AccountState = Pick<AccountToVerify, "open" | "checkpoint">;

/** What reservations and checkpoints say of each account; to be asked for in the order of their ids. */
function openStateReader(hexOf: HexOf): (accountId: string) => Reading<AccountState> {
  // By an expression, as SQLite would read every receipt in the order of its index by account otherwise.
  const open = new RowsInOrder(
    "select account_id, reserved_nanos from reservation where state = 'open' order by account_id || ''",
  );
  const checkpoints = new RowsInOrder(
    `select checkpoint.*, (select coalesce(sum(charged_nanos), 0) from reservation
         where reservation.account_id = checkpoint.account_id and resolved_sequence <= checkpoint.sequence)
       + coalesce((select charged_nanos from archive where archive.account_id = checkpoint.account_id), 0) as charged
     from checkpoint order by account_id`,
  );
  const running = new RowsInOrder(
    `select checkpoint.account_id, reservation.request_id, ${reservationColumns}, ${hexOf("reservation.head")} as head
     from checkpoint join reservation on reservation.account_id = checkpoint.account_id
       and reserved_sequence <= checkpoint.sequence
       and (resolved_sequence is null or resolved_sequence > checkpoint.sequence)
     order by checkpoint.account_id`,
  );
  return function* (id) {
    let count = 0;
    let reservedNanos = 0n;
    yield* open.each(
      (accountId) => accountId <= id,
      (row) => {
        if (textOf(row, "account_id") < id) return;
        count += 1;
        reservedNanos += bigOf(row, "reserved_nanos");
      },
    );
    const requests: CheckpointToVerify["running"][number][] = [];
    yield* running.each(
      (accountId) => accountId <= id,
      (row) =>
        void requests.push({
          requestId: textOf(row, "request_id"),
          reservation: reservationOf(row),
        }),
    );
    let checkpoint: CheckpointToVerify | null = null;
    yield* checkpoints.each(
      (accountId) => accountId <= id,
      (row) => {
        const chargedNanos = bigOf(row, "charged");
        checkpoint = { ...checkpointOf(row), chargedNanos, running: requests };
      },
    );
    return { open: { count, reservedNanos }, checkpoint };
  };
}

// Of a period that began before the last archived receipt ended, which is over for long, receipts may be missing: it is left out.

/** What the budgets of keys have spent and hold in their present periods, beside what the receipts say. */
function* readBudgets(verification: JournalVerification): Reading<void> {
  const budgets = {
    sql: `select api_key.account_id, api_key.id, budget_spent_nanos, budget_held_nanos,
        case when archive.account_id is null then coalesce(sums.spent, 0)
          when budget_period = 'total' then ${chargedEver("api_key.account_id", "api_key.id")}
          when budget_begin_ms >= archive.until_ms then coalesce(sums.spent, 0)
          else budget_spent_nanos end as spent, coalesce(sums.held, 0) as held
      from api_key left join (
        select reservation.account_id, reservation.key_id,
          sum(case when resolved_sequence > coalesce(budget_set_sequence, 0)
              and reservation.budget_begin_ms = api_key.budget_begin_ms then charged_nanos
            when resolved_sequence <= budget_set_sequence and admitted_at_ms >= api_key.budget_begin_ms
              then charged_nanos else 0 end) as spent,
          sum(case when state = 'open' and reservation.budget_begin_ms = api_key.budget_begin_ms
            then reserved_nanos else 0 end) as held
        from (select distinct account_id from api_key where budget_nanos is not null) as budgeted
        join reservation on reservation.account_id = budgeted.account_id
        join api_key on api_key.account_id = reservation.account_id and api_key.id = reservation.key_id
          and api_key.budget_nanos is not null
        group by reservation.account_id, reservation.key_id
      ) as sums on sums.account_id = api_key.account_id and sums.key_id = api_key.id
      left join archive on archive.account_id = api_key.account_id
      where budget_nanos is not null order by api_key.account_id, api_key.id`,
  };
  for (;;) {
    const piece = yield budgets;
    if (piece.length === 0) return;
    for (const row of piece)
      verification.budget({
        accountId: textOf(row, "account_id"),
        keyId: textOf(row, "id"),
        spentNanos: bigOf(row, "budget_spent_nanos"),
        heldNanos: bigOf(row, "budget_held_nanos"),
        receipts: { spentNanos: bigOf(row, "spent"), heldNanos: bigOf(row, "held") },
      });
  }
}

/** Whether no checkpoint stands for the entry of this number, as a condition in SQL. */
function newer(sequence: string): string {
  return `coalesce(${sequence}, 0) > coalesce(checkpoint.sequence, -1)`;
}

/** Receipts whose entries are not there; those that a checkpoint stands for are checked by their sums. */
function* readStrays(verification: JournalVerification): Reading<void> {
  const counted = yield {
    sql: `select count(*) filter (where ${newer("reserved_sequence")}) as reserved,
        count(*) filter (where state <> 'open' and ${newer("resolved_sequence")}) as resolved
      from reservation left join checkpoint on checkpoint.account_id = reservation.account_id`,
  };
  const [counts] = counted;
  if (counts === undefined) throw new Error("ledger: the receipts could not be counted");
  const receipts = {
    reserved: numberOf(counts, "reserved"),
    resolved: numberOf(counts, "resolved"),
  };
  if (verification.metAll(receipts)) return;
  const strays = {
    sql: `select receipt.account_id, receipt.request_id, receipt.wanted from (
        select request_id, account_id, reserved_sequence as wanted from reservation
        union all
        select request_id, account_id, resolved_sequence from reservation where state <> 'open'
      ) as receipt
      left join checkpoint on checkpoint.account_id = receipt.account_id
      where ${newer("receipt.wanted")}
        and not exists (select 1 from entry where entry.account_id = receipt.account_id
          and entry.sequence = receipt.wanted and entry.request_id = receipt.request_id)
      order by receipt.account_id, receipt.wanted`,
  };
  for (;;) {
    const piece = yield strays;
    if (piece.length === 0) return;
    for (const row of piece)
      verification.strayReceipt(
        textOf(row, "account_id"),
        textOf(row, "request_id"),
        numberOrNullOf(row, "wanted"),
      );
  }
}
