import type { CreditNanos } from "./records.ts";
import { bigOf, numberOf, type Row, textOf } from "./row.ts";

/** What a sum of usage is over. */
export type UsageGrouping = "hour" | "day" | "key" | "format";

/** Which requests to add up: those resolved in `[sinceMs, untilMs)`; null: without that bound, or all accounts. */
export interface UsageQuery {
  readonly accountId: string | null;
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
  readonly by: UsageGrouping;
}

/** The requests of one account and one group, added up. */
export interface UsageRow {
  readonly accountId: string;
  /** The beginning of the hour or day in UTC, the key's id, or the format's name. */
  readonly group: string;
  readonly requests: number;
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly chargedNanos: CreditNanos;
}

/** A line of usage, from the columns that both stores' sums are named by. */
export function usageRowOf(row: Row): UsageRow {
  return {
    accountId: textOf(row, "account_id"),
    group: textOf(row, "grouped"),
    requests: numberOf(row, "requests"),
    inputTokens: numberOf(row, "input"),
    cachedInputTokens: numberOf(row, "cached"),
    outputTokens: numberOf(row, "output"),
    reasoningTokens: numberOf(row, "reasoning"),
    chargedNanos: bigOf(row, "charged"),
  };
}
