import type { LimitsInForce } from "../admission/limits-in-force.ts";
import {
  cachedInputPrice,
  formatCredit,
  formatFemtos,
  priceLines,
  type Prices,
} from "../admission/price.ts";
import type { Usage } from "../conversation/generation-event.ts";
import type { BudgetState } from "./budget.ts";
import { formatHead, type JournalHead } from "./journal.ts";
import { defaultPriceList, pricesOf } from "./price-list.ts";
import type { Account } from "./records.ts";
import type { AccountId, CreditNanos, KeyId, RequestId } from "./scalars.ts";
import {
  bigOf,
  bytesOf,
  idOf,
  numberOf,
  numberOrNullOf,
  type Row,
  textOf,
  textOrNullOf,
} from "./row.ts";

/** How a generation ended, for the receipt. */
export type SettlementOutcome =
  | "completed"
  | "cancelled" // the client left after output began
  | "cancelled-before-output"
  | "refused" // by the deployment, before it generated
  | "failed"
  | "cancelled-by-operator"
  | "lease-lost";

/** What one request reserved and what it was charged; while it runs, what it holds. Times as `Ledger` has them. */
export interface Receipt {
  readonly requestId: RequestId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly state: "open" | "settled" | "expired";
  readonly format: string;
  readonly streamed: boolean;
  /** For whom of the account's users it was; null: the request did not say. */
  readonly label: string | null;
  readonly inputBound: number;
  readonly allowance: number;
  /** The name of the price list, and its prices when the request was admitted. */
  readonly priceList: string;
  readonly prices: Prices;
  readonly reservedNanos: CreditNanos;
  /** null while it runs, like the outcome and the time of resolution. */
  readonly chargedNanos: CreditNanos | null;
  readonly outcome: SettlementOutcome | null;
  /** What refunds have given back of the charge. */
  readonly refundedNanos: CreditNanos;
  /** null where nothing was charged for. */
  readonly usage: Usage | null;
  readonly admittedAtMs: number;
  readonly resolvedAtMs: number | null;
  readonly firstOutputMs: number | null;
  readonly totalMs: number | null;
  /** Of the account's journal at the newest entry of this request. */
  readonly head: JournalHead;
}

/** An account as its own callers see it. */
export interface CallerAccount {
  readonly account: Account;
  /** Oldest first. */
  readonly running: readonly Receipt[];
  /** Of the account, and of the key that looks. */
  readonly limits: LimitsInForce;
  /** Of the account's price list, now. */
  readonly prices: Prices;
  /** Of the key that asks; null: it has none. */
  readonly budget: BudgetState | null;
  /** Of the account's journal; null while it has no entry. */
  readonly head: JournalHead | null;
}

/** The columns of a reservation that `receiptOf` reads. */
export const receiptColumns = `request_id, account_id, key_id, state, format, streamed, label, input_bound, allowance,
  price_list, input_nanos_per_million, cached_input_nanos_per_million, output_nanos_per_million, reserved_nanos, charged_nanos, outcome, input_tokens,
  cached_input_tokens, output_tokens, reasoning_tokens, admitted_at_ms, resolved_at_ms, first_output_ms, total_ms,
  reserved_sequence, resolved_sequence, head, refunded_nanos`;

/** A receipt, from columns of these names. */
export function receiptOf(row: Row): Receipt {
  const accountId = idOf(row, "account_id", "acct_");
  return {
    requestId: idOf(row, "request_id", "req_"),
    accountId,
    keyId: idOf(row, "key_id", "key_"),
    state: textOf(row, "state") as Receipt["state"],
    format: textOf(row, "format"),
    streamed: row["streamed"] === true || row["streamed"] === 1n,
    label: textOrNullOf(row, "label"),
    inputBound: numberOf(row, "input_bound"),
    allowance: numberOf(row, "allowance"),
    priceList: textOrNullOf(row, "price_list") ?? defaultPriceList,
    prices: pricesOf(row),
    reservedNanos: bigOf(row, "reserved_nanos"),
    chargedNanos: row["charged_nanos"] === null ? null : bigOf(row, "charged_nanos"),
    outcome: textOrNullOf(row, "outcome") as SettlementOutcome | null,
    refundedNanos: bigOf(row, "refunded_nanos"),
    usage: usageOf(row),
    admittedAtMs: numberOf(row, "admitted_at_ms"),
    resolvedAtMs: numberOrNullOf(row, "resolved_at_ms"),
    firstOutputMs: numberOrNullOf(row, "first_output_ms"),
    totalMs: numberOrNullOf(row, "total_ms"),
    head: {
      accountId,
      sequence: numberOrNullOf(row, "resolved_sequence") ?? numberOf(row, "reserved_sequence"),
      hash: bytesOf(row, "head"),
    },
  };
}

/** The head of an account, from columns `id`, `entries` and `head`. */
export function headOf(row: Row): JournalHead | null {
  const sequence = numberOf(row, "entries");
  if (sequence === 0) return null;
  return { accountId: idOf(row, "id", "acct_"), sequence, hash: bytesOf(row, "head") };
}

function usageOf(row: Row): Usage | null {
  if (row["input_tokens"] === null) return null;
  return {
    inputTokens: numberOf(row, "input_tokens"),
    cachedInputTokens: numberOf(row, "cached_input_tokens"),
    outputTokens: numberOf(row, "output_tokens"),
    reasoningTokens: numberOf(row, "reasoning_tokens"),
  };
}

/** A receipt as commands print it and as callers get it: amounts are decimal strings of credits, times RFC 3339. */
export function receiptToJson(receipt: Receipt): Readonly<Record<string, unknown>> {
  const { chargedNanos, resolvedAtMs, usage } = receipt;
  return {
    id: receipt.requestId,
    account: receipt.accountId,
    key: receipt.keyId,
    format: receipt.format,
    streamed: receipt.streamed,
    label: receipt.label,
    state: receipt.state,
    outcome: receipt.outcome,
    input_bound: receipt.inputBound,
    output_allowance: receipt.allowance,
    price_list: receipt.priceList,
    prices: pricesToJson(receipt.prices),
    reserved: formatCredit(receipt.reservedNanos),
    charged: chargedNanos === null ? null : formatCredit(chargedNanos),
    lines: linesToJson(receipt),
    refunded: formatCredit(receipt.refundedNanos),
    usage:
      usage === null
        ? null
        : {
            input_tokens: usage.inputTokens,
            cached_input_tokens: usage.cachedInputTokens,
            output_tokens: usage.outputTokens,
            reasoning_tokens: usage.reasoningTokens,
          },
    admitted_at: new Date(receipt.admittedAtMs).toISOString(),
    resolved_at: resolvedAtMs === null ? null : new Date(resolvedAtMs).toISOString(),
    first_output_ms: receipt.firstOutputMs,
    total_ms: receipt.totalMs,
    head: formatHead(receipt.head),
  };
}

/** What a charge is made of, line by line; null where nothing was charged for. */
export function linesToJson({ prices, usage }: Pick<Receipt, "prices" | "usage">) {
  if (usage === null) return null;
  return priceLines(usage, prices).map(({ femtos, item, nanosPerMillion, tokens }) => ({
    item,
    tokens,
    price: formatCredit(nanosPerMillion),
    amount: formatFemtos(femtos),
  }));
}

/** Prices in credits per million tokens, as decimal strings. */
export function pricesToJson(prices: Prices): {
  readonly input: string;
  readonly cached_input: string;
  readonly output: string;
} {
  return {
    input: formatCredit(prices.inputNanosPerMillion),
    cached_input: formatCredit(cachedInputPrice(prices)),
    output: formatCredit(prices.outputNanosPerMillion),
  };
}
