import { limitsInForce } from "../../admission/limits-in-force.ts";
import { budgetColumns, budgetOf } from "../budget.ts";
import { headOf, receiptColumns, receiptOf } from "../receipt.ts";
import { accountColumns, accountOf, keyLimitsOf } from "../records.ts";
import { currentPrices, joinedPriceColumns, joinPrice } from "../price-list.ts";
import type { AdmitRules } from "./admit.ts";
import { numberOf } from "../row.ts";
import type { Clock, Database } from "./database.ts";
import type { PostgresOperations } from "../store-operations.ts";

type Books = Pick<PostgresOperations, "receipt" | "callerAccount">;

const receipt = {
  name: "receipt",
  text: `select ${receiptColumns} from tributary.reservation
    where request_id = $1 and ($2::text is null or account_id = $2)`,
};
const account = {
  name: "caller-account",
  text: `select ${accountColumns},
      ${joinedPriceColumns}
    from tributary.account account ${joinPrice("tributary.", "coalesce($2::bigint, tributary.now_ms())")}
    where id = $1`,
};
const key = {
  name: "caller-key",
  text: `select ${budgetColumns}, requests_per_minute, output_tokens_max, coalesce($3, tributary.now_ms()) as now from tributary.api_key
    where account_id = $1 and id = $2`,
};
const running = {
  name: "running",
  text: `select ${receiptColumns} from tributary.reservation where account_id = $1 and state = 'open'
    order by admitted_at_ms, request_id`,
};

/** What callers and operators read: receipts, an account with what it runs. */
export function openBooks(
  database: Database,
  rules: AdmitRules & { readonly requestsPerMinute: number },
  clock: Clock,
): Books {
  return {
    async receipt({ accountId, requestId }) {
      const [row] = await database.query(receipt, requestId, accountId);
      return row === undefined ? null : receiptOf(row);
    },
    callerAccount: ({ accountId, keyId }) =>
      // All statements read one snapshot: no request ends between them.
      database.transaction(async (query) => {
        const [row] = await query(account, accountId, clock());
        const [ofKey] = await query(key, accountId, keyId, clock());
        if (row === undefined || ofKey === undefined)
          throw new Error(`ledger: a caller of ${accountId} has no account`);
        const shown = accountOf(row);
        return {
          account: shown,
          running: (await query(running, accountId)).map(receiptOf),
          limits: limitsInForce(rules, shown.limits, keyLimitsOf(ofKey)),
          prices: currentPrices(row, rules.prices),
          budget: budgetOf(ofKey, numberOf(ofKey, "now")),
          head: headOf(row),
        };
      }, "repeatable read"),
  };
}
