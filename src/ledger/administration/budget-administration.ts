import { formatCredit } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import type { Budget, BudgetState } from "../budget.ts";
import { OperatorError } from "../operator-error.ts";
import { isTimeZone, periodAt, periodLengths } from "../periods.ts";
import type { KeyRecord } from "../records.ts";
import { bigOf, numberOf, type Row } from "../row.ts";
import type { AuditFacts } from "./audit.ts";
import { type Patch, present } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

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
      `budget.amount is an amount of credits from 0 to ${formatCredit(limits.creditNanosMax)}, such as "10".`,
    );
  if (period === undefined || !periodLengths.includes(period))
    throw invalid(`budget.period is one of ${periodLengths.join(", ")}.`);
  if (timezone === undefined || !isTimeZone(timezone))
    throw invalid("budget.timezone is UTC, or a name such as Europe/Berlin.");
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

/** Gives a key a budget, or none; the account's row is locked. What the key was charged since the period began counts. */
export function* setBudget(
  { accountId, id }: KeyRecord,
  budget: Budget | null,
  nowMs: number,
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
  yield* ask(
    `update tributary.reservation set budget_begin_ms = case when admitted_at_ms >= $3 then $3 else null end
     where account_id = $1 and key_id = $2 and state = 'open'`,
    accountId,
    id,
    beginMs,
  );
  const sums = yield* askRow(
    `select coalesce(sum(charged_nanos), 0) as spent,
       coalesce(sum(case when state = 'open' then reserved_nanos else 0 end), 0) as held
     from tributary.reservation where account_id = $1 and key_id = $2 and admitted_at_ms >= $3`,
    accountId,
    id,
    beginMs,
  );
  const account = yield* askRow("select entries from tributary.account where id = $1", accountId);
  const spentNanos = bigOf(sums, "spent");
  const heldNanos = bigOf(sums, "held");
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
    numberOf(account, "entries"),
  );
  return { ...budget, beginMs, endMs, spentNanos, heldNanos };
}

function* askRow(sql: string, ...values: readonly (string | number)[]): Steps<Row> {
  const row = yield* askOne(sql, ...values);
  if (row === null) throw new Error("ledger: the account of a key is not there");
  return row;
}

function invalid(message: string): OperatorError {
  return new OperatorError("invalid_value", message);
}
