import { formatCredit } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import type { Budget, BudgetState } from "../budget.ts";
import type { CreditNanos } from "../scalars.ts";
import { OperatorError } from "../operator-error.ts";
import { isTimeZone, periodAt, periodLengths } from "../periods.ts";
import { unknownKeyId } from "../operator-input.ts";
import { keyColumns, keyOf, type KeyRecord } from "../records.ts";
import { bigOf, numberOf, type Row, textOf } from "../row.ts";
import type { AuditFacts } from "./audit.ts";
import { type Patch, present } from "./changed-by.ts";
import { archivedUntil } from "../archive/archive-receipts.ts";
import { chargedEver } from "../usage/charged-ever.ts";
import { ask, askOne, type StatementValue, type Steps } from "./steps.ts";

/** The budget after a change: null where there is none any more; throws where it would be none that can be kept. */
export function patchedBudget(before: Budget | null, patch: Patch<Budget> | null): Budget | null {
  if (patch === null) return null;
  const { amountNanos, period, timezone }: Partial<Budget> = {
    timezone: "UTC",
    ...before,
    ...present(patch),
  };
  if (amountNanos === undefined || amountNanos < 0n || amountNanos > limits.creditNanosMax)
    throw invalid(
      "amount",
      `is an amount of credits from 0 to ${formatCredit(limits.creditNanosMax)}, such as "10".`,
    );
  if (period === undefined || !periodLengths.includes(period))
    throw invalid("period", `is one of ${periodLengths.join(", ")}.`);
  if (timezone === undefined || !isTimeZone(timezone))
    throw invalid("timezone", "is UTC, or a name such as Europe/Berlin.");
  return { amountNanos, period, timezone };
}

/** The facts of a budget for the audit log. */
export function budgetFacts(budget: Budget | null): AuditFacts {
  return {
    budget_amount: budget === null ? null : formatCredit(budget.amountNanos),
    budget_period: budget?.period ?? null,
    budget_timezone: budget?.timezone ?? null,
  };
}

/** What a key was charged since its period began, as far as it was counted before its budget is set. */
export interface CountedCharges {
  /** The begin of the period; null: of any, as the key is new. */
  readonly sinceMs: number | null;
  /** Requests that were resolved by later entries of the account are not counted. */
  readonly through: number;
  readonly nanos: CreditNanos;
  /** The rest was admitted from then on; null: there is no rest. */
  readonly nextMs: number | null;
}

/** Of a key that is made just now. */
export const nothingCharged: CountedCharges = {
  sinceMs: null,
  through: Number.MAX_SAFE_INTEGER,
  nanos: 0n,
  nextMs: null,
};

/**
 * Counts some of what a key was charged, without a lock, so that `setBudget` has only what was charged meanwhile left to
 * count while requests wait for it.
 */
export function* countCharges(
  order: {
    readonly id: string;
    readonly budget: Patch<Budget>;
    /** What was counted before; null: nothing. */
    readonly counted: CountedCharges | null;
    /** How many of the account's receipts are read; absent: `limits.budgetReceiptsAStep`. */
    readonly receiptsMax?: number;
  },
  { nowMs }: { readonly nowMs: number },
): Steps<CountedCharges> {
  const { counted, id, receiptsMax = limits.budgetReceiptsAStep } = order;
  const row = yield* askOne(`select ${keyColumns} from tributary.api_key where id = $1`, id);
  if (row === null) throw unknownKeyId(id);
  const { accountId, budget: before } = keyOf(row, nowMs);
  const budget = patchedBudget(before, order.budget);
  const sinceMs = counted?.sinceMs ?? (budget === null ? 0 : periodAt(budget, nowMs).beginMs);
  const fromMs = counted?.nextMs ?? sinceMs;
  const through = counted?.through ?? (yield* entriesOf(accountId));
  const ends = yield* askOne(
    `select admitted_at_ms from tributary.reservation where account_id = $1 and admitted_at_ms >= $2
     order by admitted_at_ms limit 1 offset ${String(receiptsMax)}`,
    accountId,
    fromMs,
  );
  const nextMs = ends === null ? null : Math.max(numberOf(ends, "admitted_at_ms"), fromMs + 1);
  const sum = yield* askRow(
    `select coalesce(sum(charged_nanos), 0) as spent from tributary.reservation
     where account_id = $1 and key_id = $2 and admitted_at_ms >= $3 and admitted_at_ms < $4 and resolved_sequence <= $5`,
    accountId,
    id,
    fromMs,
    nextMs ?? Number.MAX_SAFE_INTEGER,
    through,
  );
  return { sinceMs, through, nextMs, nanos: (counted?.nanos ?? 0n) + bigOf(sum, "spent") };
}

/** Gives a key a budget, or none; the account's row is locked. What the key was charged since the period began counts. */
export function* setBudget(
  { accountId, id }: KeyRecord,
  budget: Budget | null,
  { counted, nowMs }: { readonly counted: CountedCharges | null; readonly nowMs: number },
): Steps<BudgetState | null> {
  if (budget === null) {
    yield* ask(
      `update tributary.api_key set budget_nanos = null, budget_period = null, budget_timezone = null,
         budget_begin_ms = null, budget_end_ms = null, budget_spent_nanos = 0, budget_held_nanos = 0,
         budget_set_sequence = null
       where id = $1`,
      id,
    );
    return null;
  }
  const { beginMs, endMs } = periodAt(budget, nowMs);
  const heldNanos = yield* countRunning(accountId, id, beginMs);
  const isOfPeriod = counted !== null && (counted.sinceMs ?? beginMs) === beginMs;
  const rest = yield* askRow(
    `select coalesce(sum(charged_nanos), 0) as spent from tributary.reservation
     where account_id = $1 and key_id = $2 ${isOfPeriod ? restCondition : "and admitted_at_ms >= $3"}`,
    accountId,
    id,
    beginMs,
    ...(isOfPeriod ? [counted.through] : []),
  );
  const spentNanos =
    (yield* chargedIfArchived(accountId, id, beginMs)) ??
    bigOf(rest, "spent") + (isOfPeriod ? counted.nanos : 0n);
  yield* ask(
    `update tributary.api_key set budget_nanos = $2, budget_period = $3, budget_timezone = $4, budget_begin_ms = $5,
       budget_end_ms = $6, budget_spent_nanos = $7, budget_held_nanos = $8, budget_set_sequence = $9
     where id = $1`,
    id,
    budget.amountNanos,
    budget.period,
    budget.timezone,
    beginMs,
    endMs,
    spentNanos,
    heldNanos,
    yield* entriesOf(accountId),
  );
  return { ...budget, beginMs, endMs, spentNanos, heldNanos };
}

// By an expression, as SQLite would read all receipts since then by their times otherwise.
const restCondition = "and state <> 'open' and resolved_sequence > $4 and admitted_at_ms + 0 >= $3";

/** What running requests of a key hold that count in the period with this begin, in which they are from now on. */
function* countRunning(accountId: string, keyId: string, beginMs: number): Steps<CreditNanos> {
  // By an expression, as SQLite would read every receipt of the account otherwise.
  const running = yield* ask(
    `select request_id, admitted_at_ms, reserved_nanos from tributary.reservation
     where state = 'open' and account_id || '' = $1 and key_id = $2`,
    accountId,
    keyId,
  );
  let heldNanos = 0n;
  for (const row of running) {
    const isCounted = numberOf(row, "admitted_at_ms") >= beginMs;
    if (isCounted) heldNanos += bigOf(row, "reserved_nanos");
    yield* ask(
      "update tributary.reservation set budget_begin_ms = $3 where account_id = $1 and request_id = $2",
      accountId,
      textOf(row, "request_id"),
      isCounted ? beginMs : null,
    );
  }
  return heldNanos;
}

/** Of a period that never ends, what a key was ever charged, where receipts of its account are archived; else null. */
function* chargedIfArchived(
  accountId: string,
  keyId: string,
  beginMs: number,
): Steps<CreditNanos | null> {
  if (beginMs !== 0 || (yield* archivedUntil(accountId)) === null) return null;
  const ever = `select ${chargedEver("$1", "$2", "tributary.")} as spent`;
  return bigOf(yield* askRow(ever, accountId, keyId), "spent");
}

function* entriesOf(accountId: string): Steps<number> {
  const account = yield* askRow("select entries from tributary.account where id = $1", accountId);
  return numberOf(account, "entries");
}

function* askRow(sql: string, ...values: readonly StatementValue[]): Steps<Row> {
  const row = yield* askOne(sql, ...values);
  if (row === null) throw new Error("ledger: the account of a key is not there");
  return row;
}

function invalid(member: string, words: string): OperatorError {
  const param = `budget.${member}`;
  return new OperatorError("invalid_value", `${param} ${words}`, { param });
}
