import type { DatabaseSync } from "node:sqlite";
import { limitsInForce } from "../../admission/limits-in-force.ts";
import { budgetColumns, budgetOf } from "../budget.ts";
import type { StoreOperations } from "../store-operations.ts";
import { headOf, receiptColumns, receiptOf } from "../receipt.ts";
import { accountColumns, accountOf, keyLimitsOf } from "../records.ts";
import { currentPrices, joinedPriceColumns, joinPrice } from "../price-list.ts";
import type { AdmitRules } from "./admit.ts";
import { getRow } from "./get-row.ts";

type Books = Pick<StoreOperations, "receipt" | "callerAccount">;

/** What callers and operators read: receipts, an account with what it runs. */
export function openBooks(
  database: DatabaseSync,
  rules: AdmitRules & { readonly requestsPerMinute: number },
): Books {
  const receipt = database.prepare(
    `select ${receiptColumns} from reservation where request_id = ?1 and account_id = coalesce(?2, account_id)`,
  );
  const account = database.prepare(
    `select ${accountColumns},
       ${joinedPriceColumns} from account ${joinPrice("", "?2")} where id = ?1`,
  );
  const key = database.prepare(
    `select ${budgetColumns}, requests_per_minute, output_tokens_max from api_key where account_id = ? and id = ?`,
  );
  const running = database.prepare(
    `select ${receiptColumns} from reservation where account_id = ? and state = 'open'
     order by admitted_at_ms, request_id`,
  );
  return {
    receipt(order) {
      const row = getRow(receipt, order.requestId, order.accountId);
      return row === null ? null : receiptOf(row);
    },
    callerAccount({ accountId, keyId }, nowMs) {
      const row = getRow(account, accountId, nowMs);
      const ofKey = getRow(key, accountId, keyId);
      if (row === null || ofKey === null)
        throw new Error(`ledger: a caller of ${accountId} has no account`);
      const shown = accountOf(row);
      return {
        account: shown,
        running: running.all(accountId).map(receiptOf),
        limits: limitsInForce(rules, shown.limits, keyLimitsOf(ofKey)),
        prices: currentPrices(row, rules.prices),
        budget: budgetOf(ofKey, nowMs),
        head: headOf(row),
      };
    },
  };
}
