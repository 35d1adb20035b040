import { formatCredit } from "../admission/price.ts";
import type { CreditNanos } from "./scalars.ts";
import { periodAt, type Period, type PeriodLength } from "./periods.ts";
import { bigOf, numberOf, numberOrNullOf, type Row, textOf } from "./row.ts";

/** What a key may be charged in each period. */
export interface Budget {
  readonly amountNanos: CreditNanos;
  readonly period: PeriodLength;
  /** A name of the IANA database; periods begin with its days. */
  readonly timezone: string;
}

/** A budget in its present period: what the requests were charged that were admitted in it, and what those that run hold. */
export interface BudgetState extends Budget, Period {
  readonly spentNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
}

/** The columns of a key that `budgetOf` reads. */
export const budgetColumns =
  "budget_nanos, budget_period, budget_timezone, budget_begin_ms, budget_end_ms, budget_spent_nanos, budget_held_nanos";

/** The budget of a key at a time, from columns of these names; null: it has none. */
export function budgetOf(row: Row, nowMs: number): BudgetState | null {
  if (row["budget_nanos"] === null) return null;
  const budget: Budget = {
    amountNanos: bigOf(row, "budget_nanos"),
    period: textOf(row, "budget_period") as PeriodLength,
    timezone: textOf(row, "budget_timezone"),
  };
  const endMs = numberOrNullOf(row, "budget_end_ms");
  // The row still has the last period in which the key was used.
  if (endMs !== null && endMs <= nowMs)
    return { ...budget, ...periodAt(budget, nowMs), spentNanos: 0n, heldNanos: 0n };
  return {
    ...budget,
    beginMs: numberOf(row, "budget_begin_ms"),
    endMs,
    spentNanos: bigOf(row, "budget_spent_nanos"),
    heldNanos: bigOf(row, "budget_held_nanos"),
  };
}

/** What is left to show: 0 too where the budget has become smaller than what is spent and held. */
/** What a request may reserve: the credit that is free, or less where the budget leaves less; then it may be negative. */
export function availableOf(creditNanos: CreditNanos, budget: BudgetState | null): CreditNanos {
  if (budget === null) return creditNanos;
  const leftNanos = budget.amountNanos - budget.spentNanos - budget.heldNanos;
  return leftNanos < creditNanos ? leftNanos : creditNanos;
}

export function budgetLeft(state: BudgetState): CreditNanos {
  const left = state.amountNanos - state.spentNanos - state.heldNanos;
  return left > 0n ? left : 0n;
}

/** A budget as callers and operators see it, with what is left of it; all null where the key has none. */
export interface BudgetJson {
  readonly budget: {
    readonly amount: string;
    readonly period: PeriodLength;
    readonly timezone: string;
  } | null;
  readonly budget_spent: string | null;
  readonly budget_held: string | null;
  readonly budget_left: string | null;
  readonly budget_begins_at: string | null;
  readonly budget_ends_at: string | null;
}

const noBudget: BudgetJson = {
  budget: null,
  budget_spent: null,
  budget_held: null,
  budget_left: null,
  budget_begins_at: null,
  budget_ends_at: null,
};

/** Amounts as decimal strings of credits, times RFC 3339. */
export function budgetToJson(state: BudgetState | null): BudgetJson {
  if (state === null) return noBudget;
  const { amountNanos, beginMs, endMs, heldNanos, period, spentNanos, timezone } = state;
  return {
    budget: { amount: formatCredit(amountNanos), period, timezone },
    budget_spent: formatCredit(spentNanos),
    budget_held: formatCredit(heldNanos),
    budget_left: formatCredit(budgetLeft(state)),
    budget_begins_at: endMs === null ? null : new Date(beginMs).toISOString(),
    budget_ends_at: endMs === null ? null : new Date(endMs).toISOString(),
  };
}
