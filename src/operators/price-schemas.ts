import { z } from "@hono/zod-openapi";
import { formatCredit } from "../admission/price.ts";
import type { AskedPrices } from "../ledger/administration/price-administration.ts";
import { limits } from "../limits.ts";
import { instant } from "./route.ts";
import { amount } from "./schemas.ts";

const shownPrice = z.string().openapi({
  description: "credits for a million tokens, as a decimal string",
  example: "0.25",
});

/** A price list. */
export const priceListSchema = z
  .object({
    name: z.string(),
    source: z.enum(["ledger", "settings"]).openapi({
      description:
        "`settings`: the ledger has no list `default`, which is the prices of the settings until it has",
    }),
    prices: z
      .array(
        z.object({
          effective_from: z.iso.datetime().nullable().openapi({
            description: "they hold from then on, until the next; null: of the settings, always",
          }),
          input: shownPrice,
          cached_input: shownPrice,
          output: shownPrice,
        }),
      )
      .openapi({ description: "by `effective_from`, the first first" }),
    created_at: z.iso.datetime().nullable(),
    version: z.int().openapi({ description: "goes up with each change; `If-Match` takes it" }),
  })
  .openapi("PriceList");

const price = amount.refine((nanos) => nanos >= 0n && nanos <= limits.priceNanosMax, {
  message: `is no price: write it as a string from 0 to ${formatCredit(limits.priceNanosMax)}, credits for a million tokens`,
});
const prices = z
  .array(
    z.strictObject({
      effective_from: instant.nullable().optional().openapi({
        description: "they hold from then on, until the next; absent or null: from now on",
      }),
      input: price,
      cached_input: price
        .nullable()
        .optional()
        .openapi({
          // Else the type of a price stands, which is never null.
          type: ["string", "null"],
          description: "of input tokens that the deployment had in its cache; absent: as `input`",
        }),
      output: price,
    }),
  )
  .min(1)
  .max(limits.pricesOfListMax);

/** A price list to make. */
export const newPriceListSchema = z
  .strictObject({ name: z.string().min(1).max(limits.priceListNameMax), prices })
  .openapi("NewPriceList");

/** What of a price list to change. */
export const priceListPatchSchema = z
  .strictObject({
    prices: prices.optional().openapi({
      description:
        "in the place of all prices that have not begun; those that have stay, and may be among these as they are",
    }),
  })
  .openapi("PriceListPatch");

/** The prices in the ledger's words. */
export function askedPricesOf(
  given: z.infer<typeof newPriceListSchema>["prices"],
): readonly AskedPrices[] {
  return given.map(({ cached_input: cached = null, effective_from: from = null, ...rest }) => ({
    effectiveFromMs: from === null ? null : Date.parse(from),
    inputNanosPerMillion: rest.input,
    ...(cached === null ? {} : { cachedInputNanosPerMillion: cached }),
    outputNanosPerMillion: rest.output,
  }));
}
