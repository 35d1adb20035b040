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
  return roundedUp(
    BigInt(inputTokens) * prices.inputNanosPerMillion +
      BigInt(outputTokens) * prices.outputNanosPerMillion,
  );
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

/** One line of a sum: so many tokens at one price. */
export interface PriceLine {
  readonly item: "input" | "cached_input" | "output";
  readonly tokens: number;
  readonly nanosPerMillion: bigint;
  /** What they cost, in 1e-15 credit, which is exact. */
  readonly femtos: bigint;
}

/** What a usage costs, line by line; each input token is on one of two lines. */
export function priceLines(usage: UsageToPay, prices: Prices): readonly PriceLine[] {
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
  return [
    line("input", usage.inputTokens - cached, prices.inputNanosPerMillion),
    line("cached_input", cached, cachedInputPrice(prices)),
    line("output", usage.outputTokens, prices.outputNanosPerMillion),
  ];
}

function line(item: PriceLine["item"], tokens: number, nanosPerMillion: bigint): PriceLine {
  return { item, tokens, nanosPerMillion, femtos: BigInt(tokens) * nanosPerMillion };
}

/** What a usage costs, in nanos: the sum of its lines, rounded up once. */
export function usageCostNanos(usage: UsageToPay, prices: Prices): bigint {
  return roundedUp(priceLines(usage, prices).reduce((sum, { femtos }) => sum + femtos, 0n));
}

function roundedUp(femtos: bigint): bigint {
  return (femtos + perMillion - 1n) / perMillion;
}

/** What the smallest request reserves, in nanos: the bound of a body of no bytes, and one output token. */
export function leastCostNanos(prices: Prices): bigint {
  return costNanos(limits.inputBoundPerRequest, 1, reservedPrices(prices));
}

/** What the smallest request reserves at the highest prices that can be set: a larger balance needs no look at prices. */
export const dearestLeastNanos: bigint = leastCostNanos({
  inputNanosPerMillion: limits.priceNanosMax,
  outputNanosPerMillion: limits.priceNanosMax,
});

/** What a usage costs, never more than was reserved, in nanos. */
export function chargeNanos(usage: UsageToPay, prices: Prices, reservedNanos: bigint): bigint {
  const cost = usageCostNanos(usage, prices);
  return cost < reservedNanos ? cost : reservedNanos;
}

/** A decimal string of credits, such as "9.999812"; no trailing zeros. */
export function formatCredit(nanos: bigint): string {
  return formatDecimal(nanos, 9);
}

/** The same of integers of 1e-15 credit, with up to 15 decimals. */
export function formatFemtos(femtos: bigint): string {
  return formatDecimal(femtos, 15);
}

function formatDecimal(value: bigint, decimals: number): string {
  const sign = value < 0n ? "-" : "";
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -decimals)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Nanos of a decimal string with at most nine decimals, or null for anything else. */
export function parseCredit(text: string): bigint | null {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text);
  if (match === null) return null;
  const [, sign, whole = "0", fraction = ""] = match;
  const nanos = BigInt(whole) * nanosPerCredit + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -nanos : nanos;
}
