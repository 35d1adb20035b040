import type { DatabaseSync } from "node:sqlite";
import { limitsInForce } from "../../admission/limits-in-force.ts";
import { budgetColumns, budgetOf } from "../budget.ts";
import { type UsageGrouping, type UsageQuery, usageRowOf } from "../usage-sums.ts";
import type { StoreOperations } from "../store-operations.ts";
import { headOf, receiptColumns, receiptOf } from "../receipt.ts";
import { accountColumns, accountOf, keyLimitsOf } from "../records.ts";
import { currentPrices, joinedPriceColumns, joinPrice } from "../price-list.ts";
import { bigOf, type Row } from "../row.ts";
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
    usage(query) {
      const { text, values } = usageStatement(query);
      return database
        .prepare(text)
        .all(...values)
        .map((row) => usageRowOf(wholeSums(row)));
    },
  };
}

const sums = {
  input: "input_tokens",
  cached: "cached_input_tokens",
  output: "output_tokens",
  reasoning: "reasoning_tokens",
  charged: "charged_nanos",
} as const;

// SQLite's sum fails beyond 64 bits, so that both halves of each figure are added up alone.
const halves = Object.entries(sums).map(
  ([name, column]) =>
    `coalesce(sum(${column} >> 32), 0) as ${name}_high, coalesce(sum(${column} & 4294967295), 0) as ${name}_low`,
);

/** The sums of a query, and what its parameters are. */
export function usageStatement({ accountId, by, sinceMs, untilMs }: UsageQuery): {
  readonly text: string;
  readonly values: readonly (string | number)[];
} {
  const conditions: string[] = ["state <> 'open'"];
  const values: (string | number)[] = [];
  const where = (condition: string, value: string | number | null): void => {
    if (value === null) return;
    conditions.push(condition);
    values.push(value);
  };
  where("account_id = ?", accountId);
  where("resolved_at_ms >= ?", sinceMs);
  where("resolved_at_ms < ?", untilMs);
  // Since a time, of all accounts: the index is searched for each; else everything is read, in the table's own order.
  const each = sinceMs !== null && accountId === null;
  const from = each ? "account cross join reservation on account_id = account.id" : "reservation";
  const text = `select account_id, ${groups[by]} as grouped, count(*) as requests, ${halves.join(", ")}
    from ${from} where ${conditions.join(" and ")} group by account_id, grouped order by account_id, grouped`;
  return { text, values };
}

function wholeSums(row: Row): Row {
  const whole: Record<string, unknown> = { ...row };
  for (const name of Object.keys(sums))
    whole[name] = (bigOf(row, `${name}_high`) << 32n) + bigOf(row, `${name}_low`);
  return whole;
}
