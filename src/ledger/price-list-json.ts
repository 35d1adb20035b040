import type { PriceList } from "./administration/price-administration.ts";
import { pricesToJson } from "./receipt.ts";

/** A price list as commands print it and as operators get it: decimal strings of credits for a million tokens. */
export function priceListToJson(list: PriceList) {
  return {
    name: list.name,
    /** `settings`: the ledger has no list `default`. */
    source: list.createdAtMs === null ? ("settings" as const) : ("ledger" as const),
    prices: list.prices.map((prices) => ({
      effective_from: timeOrNull(prices.effectiveFromMs),
      ...pricesToJson(prices),
    })),
    created_at: timeOrNull(list.createdAtMs),
    version: list.version,
  };
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
