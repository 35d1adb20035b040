import { formatCredit } from "../admission/price.ts";

/** A key's budget in its present period, and what the receipts that belong to it add up to. */
export interface BudgetToVerify extends BudgetSums {
  readonly accountId: string;
  readonly keyId: string;
  readonly receipts: BudgetSums;
}

interface BudgetSums {
  readonly spentNanos: bigint;
  readonly heldNanos: bigint;
}

/** What is wrong with it, or null. */
export function budgetProblem({
  heldNanos,
  keyId,
  receipts,
  spentNanos,
}: BudgetToVerify): string | null {
  if (spentNanos === receipts.spentNanos && heldNanos === receipts.heldNanos) return null;
  return `the budget of ${keyId} has spent ${formatCredit(spentNanos)} and holds ${formatCredit(heldNanos)}, its receipts add up to ${formatCredit(receipts.spentNanos)} and ${formatCredit(receipts.heldNanos)}`;
}
