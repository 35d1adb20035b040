import type { Usage } from "../conversation/generation-event.ts";
import { limits } from "../limits.ts";

/** Integers of 1e-9 credit. */
const nanosPerCredit = 1_000_000_000n;

/** Prices as nanos per token times one million, that is nanos per million tokens, so that no price is rounded. */
export interface Prices {
  readonly inputNanosPerMillion: bigint;
  readonly outputNanosPerMillion: bigint;
}

const perMillion = 1_000_000n;

/**
 * What the tokens cost, in nanos, rounded up: the reservation and the charge use the same rule. PostgreSQL has it in
 * `ledger/postgres/accounts.sql.ts`, and `chargeNanos` too: a change here is one there.
 */
export function costNanos(inputTokens: number, outputTokens: number, prices: Prices): bigint {
  const exact =
    BigInt(inputTokens) * prices.inputNanosPerMillion +
    BigInt(outputTokens) * prices.outputNanosPerMillion;
  return (exact + perMillion - 1n) / perMillion;
}

/** What the smallest request reserves, in nanos: the bound of a body of no bytes, and one output token. */
export function leastCostNanos(prices: Prices): bigint {
  return costNanos(limits.inputBoundPerRequest, 1, prices);
}

/** What a usage costs, never more than was reserved, in nanos. */
export function chargeNanos(usage: Usage, prices: Prices, reservedNanos: bigint): bigint {
  const cost = costNanos(usage.inputTokens, usage.outputTokens, prices);
  return cost < reservedNanos ? cost : reservedNanos;
}

/** A decimal string of credits, such as "9.999812"; no trailing zeros. */
export function formatCredit(nanos: bigint): string {
  const sign = nanos < 0n ? "-" : "";
  const absolute = nanos < 0n ? -nanos : nanos;
  const fraction = (absolute % nanosPerCredit).toString().padStart(9, "0").replace(/0+$/, "");
  return `${sign}${(absolute / nanosPerCredit).toString()}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Nanos of a decimal string with at most nine decimals, or null for anything else. */
export function parseCredit(text: string): bigint | null {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text);
  if (match === null) return null;
  const [, sign, whole = "0", fraction = ""] = match;
  const nanos = BigInt(whole) * nanosPerCredit + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -nanos : nanos;
}
