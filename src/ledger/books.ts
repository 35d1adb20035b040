import type { CreditNanos } from "./ledger.ts";
import type { Receipt } from "./receipt.ts";
import type { VerifyReport } from "./verify-journal.ts";

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

/** What is rolled up: entries of one account that were written before this time. */
export interface CheckpointOrder {
  readonly accountId: string;
  readonly beforeMs: number;
}

/** What a checkpoint did. */
export interface CheckpointResult {
  readonly removed: number;
  /** Of these, entries with a later time than was asked for: a clock was wrong when they were written. */
  readonly misdated: number;
}

/** How far a checkpoint came; not `done`: there may be more to roll up. */
export interface CheckpointStep extends CheckpointResult {
  readonly done: boolean;
}

/** The operator's view of the books. All promises reject with an OperatorError for what the operator got wrong. */
export interface LedgerBooks {
  showReceipt(requestId: string): Promise<Receipt>;
  sumUsage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** Adds up the whole ledger again; `against` are heads as receipts show them. `tellHeads`: the report has all heads. */
  verify(against: readonly string[], tellHeads?: boolean): Promise<VerifyReport>;
  /** Rolls up what is older. */
  checkpoint(accountId: string, beforeMs: number): Promise<CheckpointResult>;
}
