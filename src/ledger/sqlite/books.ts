import type { DatabaseSync } from "node:sqlite";
import type { UsageGrouping } from "../books.ts";
import type { StoreOperations } from "../operations.ts";
import { headOf, receiptColumns, receiptOf } from "../receipt.ts";
import { accountOf, usageRowOf } from "../row.ts";
import type { AdmitRules } from "./admit.ts";
import { getRow } from "./get-row.ts";

type Books = Pick<StoreOperations, "receipt" | "callerAccount" | "usage">;

const groups: Readonly<Record<UsageGrouping, string>> = {
  hour: "strftime('%Y-%m-%dT%H:00:00Z', resolved_at_ms / 1000, 'unixepoch')",
  day: "strftime('%Y-%m-%d', resolved_at_ms / 1000, 'unixepoch')",
  key: "key_id",
  format: "format",
};

/** What callers and operators read: receipts, usage, an account with what it runs. */
export function openBooks(
  database: DatabaseSync,
  rules: AdmitRules & { readonly requestsPerMinute: number },
): Books {
  const receipt = database.prepare(
    `select ${receiptColumns} from reservation where request_id = ?1 and account_id = coalesce(?2, account_id)`,
  );
  const account = database.prepare(
    "select id, name, balance_nanos, held_nanos, status, created_at_ms, entries, head from account where id = ?",
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
    callerAccount(accountId) {
      const row = getRow(account, accountId);
      if (row === null) throw new Error(`ledger: a caller of ${accountId} has no account`);
      return {
        account: accountOf(row),
        running: running.all(accountId).map(receiptOf),
        limits: {
          concurrency: rules.concurrencyPerAccount,
          requestsPerMinute: rules.requestsPerMinute,
        },
        prices: rules.prices,
        head: headOf(row),
      };
    },
    usage(query) {
      const statement = database.prepare(
        `select account_id, ${groups[query.by]} as grouped, count(*) as requests,
           coalesce(sum(input_tokens), 0) as input, coalesce(sum(cached_input_tokens), 0) as cached,
           coalesce(sum(output_tokens), 0) as output, coalesce(sum(reasoning_tokens), 0) as reasoning,
           sum(charged_nanos) as charged
         from reservation
         where state <> 'open' and account_id = coalesce(?1, account_id)
           and resolved_at_ms >= coalesce(?2, resolved_at_ms) and (?3 is null or resolved_at_ms < ?3)
         group by account_id, grouped order by account_id, grouped`,
      );
      return statement.all(query.accountId, query.sinceMs, query.untilMs).map(usageRowOf);
    },
  };
}
