import type { Prices } from "../admission/price.ts";
import { bigOf, type Row } from "./row.ts";

/** The list of accounts that name none. As long as there is no list of this name, it is the prices of the settings. */
export const defaultPriceList = "default";

/** Prices, from columns of their names; a cached input without a price costs as input. */
export function pricesOf(row: Row): Prices {
  const cached = row["cached_input_nanos_per_million"];
  return {
    inputNanosPerMillion: bigOf(row, "input_nanos_per_million"),
    ...(typeof cached === "bigint" ? { cachedInputNanosPerMillion: cached } : {}),
    outputNanosPerMillion: bigOf(row, "output_nanos_per_million"),
  };
}

/**
 * Joins `price`, the prices of an account's list at the time `now`; the columns are null where the settings hold. A list but
 * `default` has prices since it was made, which hold also where a clock was set back to before.
 */
export function joinPrice(schema: "" | "tributary.", now: string): string {
  const price = `${schema}price`;
  return `left join ${price} price on price.list = coalesce(account.price_list, '${defaultPriceList}')
    and price.effective_from_ms = coalesce(
      (select max(past.effective_from_ms) from ${price} past
        where past.list = coalesce(account.price_list, '${defaultPriceList}') and past.effective_from_ms <= ${now}),
      (select min(first.effective_from_ms) from ${price} first
        where first.list = account.price_list and first.list <> '${defaultPriceList}'))`;
}

/** The columns of `price`, where `joinPrice` joins it; `listed_in` is the name of its list. */
export const joinedPriceColumns = `price.list as listed_in, price.input_nanos_per_million,
  price.cached_input_nanos_per_million, price.output_nanos_per_million`;

/** What an account pays now: a row with `joinedPriceColumns`, or the settings. */
export function currentPrices(row: Row, settings: Prices): Prices {
  return row["listed_in"] === null ? settings : pricesOf(row);
}
