import { limits } from "../limits.ts";
import { costNanos, type Prices, reservedPrices } from "./price.ts";

/** What the allowance is decided from. Tokens, except `availableNanos`. */
export interface AllowanceOrder {
  readonly inputBound: number;
  /** null: the client named none. */
  readonly requested: number | null;
  /** What fits in the deployment's context beside the input; null: not known. */
  readonly fitting: number | null;
  /** Balance minus held. */
  readonly availableNanos: bigint;
  /** What account and key may have at most; absent: what any request may. */
  readonly outputTokensMax?: number;
}

/** The allowance with its reservation, or what is missing. */
export type AllowanceDecision =
  | { readonly granted: true; readonly allowance: number; readonly reservedNanos: bigint }
  | { readonly granted: false; readonly neededNanos: bigint; readonly affordable: number };

/**
 * Explicit allowances are granted whole or not at all; an omitted one is the largest that can be paid. PostgreSQL decides
 * the same in `ledger/postgres/admit.sql.ts`: a change here is one there.
 */
export function decideAllowance(order: AllowanceOrder, listed: Prices): AllowanceDecision {
  const prices = reservedPrices(listed);
  const most = order.outputTokensMax ?? limits.outputAllowanceMax;
  const cap = Math.min(outputAllowanceCap(order.requested, order.fitting), most);
  const payable = affordableOutputTokens(order.inputBound, order.availableNanos, prices);
  const affordable = Math.min(payable, most);
  const allowance = order.requested === null ? Math.min(cap, affordable) : cap;
  const asked = Math.max(allowance, 1);
  const needed = costNanos(order.inputBound, asked, prices);
  return allowance >= 1 && needed <= order.availableNanos
    ? { granted: true, allowance, reservedNanos: needed }
    : { granted: false, neededNanos: needed, affordable };
}

/** What the allowance may be at most, whatever the credit; null as in the order. */
export function outputAllowanceCap(requested: number | null, fitting: number | null): number {
  return Math.min(
    requested ?? limits.outputAllowanceDefault,
    limits.outputAllowanceMax,
    Math.max(fitting ?? limits.outputAllowanceMax, 1),
  );
}

/** Output tokens that the credit pays for beside this input, 0 to the hard cap. */
export function affordableOutputTokens(
  inputBound: number,
  availableNanos: bigint,
  prices: Prices,
): number {
  if (costNanos(inputBound, 0, prices) > availableNanos) return 0;
  if (prices.outputNanosPerMillion === 0n) return limits.outputAllowanceMax;
  // costNanos rounds up, so the largest n with bound * in + n * out <= available * 1e6 is exact.
  const left = availableNanos * 1_000_000n - BigInt(inputBound) * prices.inputNanosPerMillion;
  const tokens = left / prices.outputNanosPerMillion;
  return tokens > BigInt(limits.outputAllowanceMax) ? limits.outputAllowanceMax : Number(tokens);
}
