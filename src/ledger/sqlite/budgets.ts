import type { DatabaseSync } from "node:sqlite";
import { budgetOf, type BudgetState } from "../budget.ts";
import type { Caller } from "../ledger.ts";
import type { CreditNanos } from "../scalars.ts";
import { numberOrNullOf, type Row } from "../row.ts";

type OfKey = Pick<Caller, "accountId" | "keyId">;

/** What keys' budgets hold and have spent, in the transaction that moves the account's credit. */
export interface Budgets {
  /** The budget of a key in its present period, which begins here where the last one is over; null: it has none. */
  present(key: OfKey, row: Row, nowMs: number): BudgetState | null;
  hold(key: OfKey, nanos: CreditNanos): void;
  /** Ends what a request held that was admitted in the period with this begin; null: its key had no budget then. */
  resolve(
    key: { readonly accountId: string; readonly keyId: string; readonly beginMs: number | null },
    nanos: { readonly held: CreditNanos; readonly charged: CreditNanos },
  ): void;
}

/** Prepares the statements once. New values are made from the rows themselves. */
export function openBudgets(database: DatabaseSync): Budgets {
  const begin = database.prepare(
    `update api_key set budget_begin_ms = ?, budget_end_ms = ?, budget_spent_nanos = 0, budget_held_nanos = 0,
       budget_set_sequence = null
     where account_id = ? and id = ?`,
  );
  const hold = database.prepare(
    "update api_key set budget_held_nanos = budget_held_nanos + ? where account_id = ? and id = ?",
  );
  // What was admitted in a period that is over counts in none any more.
  const resolve = database.prepare(
    `update api_key set budget_held_nanos = budget_held_nanos - ?, budget_spent_nanos = budget_spent_nanos + ?
     where account_id = ? and id = ? and budget_begin_ms = ?`,
  );
  return {
    present({ accountId, keyId }, row, nowMs) {
      const budget = budgetOf(row, nowMs);
      if (budget !== null && budget.endMs !== numberOrNullOf(row, "budget_end_ms"))
        begin.run(budget.beginMs, budget.endMs, accountId, keyId);
      return budget;
    },
    hold({ accountId, keyId }, nanos) {
      hold.run(nanos, accountId, keyId);
    },
    resolve({ accountId, beginMs, keyId }, { charged, held }) {
      if (beginMs !== null) resolve.run(held, charged, accountId, keyId, beginMs);
    },
  };
}
