import type { Usage } from "../conversation/generation-event.ts";
import { limits } from "../limits.ts";

/** Integers of 1e-9 credit. */
const nanosPerCredit = 1_000_000_000n;

/** Prices as nanos per token times one million, that is nanos per million tokens, so that no price is rounded. */
export interface Prices {
  readonly inputNanosPerMillion: bigint;
  /** Of input tokens that the deployment had in its cache; absent: as input. */
  readonly cachedInputNanosPerMillion?: bigint;
  readonly outputNanosPerMillion: bigint;
}

/** The tokens that a charge is made from. */
export type UsageToPay = Pick<Usage, "inputTokens" | "cachedInputTokens" | "outputTokens">;

const perMillion = 1_000_000n;

/**
 * What the tokens cost where none was cached, in nanos, rounded up. PostgreSQL has it in `ledger/postgres/accounts.sql.ts`,
 * and `chargeNanos` too: a change here is one there.
 */
export function costNanos(inputTokens: number, outputTokens: number, prices: Prices): bigint {
  const exact =
    BigInt(inputTokens) * prices.inputNanosPerMillion +
    BigInt(outputTokens) * prices.outputNanosPerMillion;
  return roundedUp(exact);
}

/** What a reservation is made at: each input token may turn out to be cached or not, and costs the dearer of both. */
export function reservedPrices(prices: Prices): Prices {
  const cached = cachedInputPrice(prices);
  return cached > prices.inputNanosPerMillion
    ? { ...prices, inputNanosPerMillion: cached }
    : prices;
}

/** What a million cached input tokens cost, in nanos. */
export function cachedInputPrice(prices: Prices): bigint {
  return prices.cachedInputNanosPerMillion ?? prices.inputNanosPerMillion;
}

/** What a usage costs, in nanos: each kind of token at its price, and the sum rounded up once. */
export function usageCostNanos(usage: UsageToPay, prices: Prices): bigint {
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
  const exact =
    BigInt(usage.inputTokens - cached) * prices.inputNanosPerMillion +
    BigInt(cached) * cachedInputPrice(prices) +
    BigInt(usage.outputTokens) * prices.outputNanosPerMillion;
  return roundedUp(exact);
}

function roundedUp(nanosTimesMillion: bigint): bigint {
  return (nanosTimesMillion + perMillion - 1n) / perMillion;
}

/** What the smallest request reserves, in nanos: the bound of a body of no bytes, and one output token. */
export function leastCostNanos(prices: Prices): bigint {
  return costNanos(limits.inputBoundPerRequest, 1, reservedPrices(prices));
}

/** What a usage costs, never more than was reserved, in nanos. */
export function chargeNanos(usage: UsageToPay, prices: Prices, reservedNanos: bigint): bigint {
  const cost = usageCostNanos(usage, prices);
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
