import { z } from "@hono/zod-openapi";
import type { Prices } from "../admission/price.ts";
import type { PriceList } from "../ledger/administration/price-administration.ts";
import { priceListToJson } from "../ledger/price-list-json.ts";
import { versionHeader } from "./if-match.ts";
import { nameOfCursor, pageOf, pageParameters, pageSchema } from "./paging.ts";
import {
  askedPricesOf,
  newPriceListSchema,
  priceListPatchSchema,
  priceListSchema,
} from "./price-schemas.ts";
import { administer, bodyOf, defineRoute, type OperatorApp } from "./route.ts";

const nameParameter = z.object({ name: z.string().openapi({ example: "default" }) });
const answered = { description: "the price list", schema: priceListSchema } as const;

const list = defineRoute("listPriceLists", "get /price_lists", {
  summary: "All price lists, by their names",
  request: { query: z.strictObject(pageParameters) },
  answer: {
    description: "a page of price lists",
    schema: pageSchema(priceListSchema, "PriceList"),
  },
});
const create = defineRoute("createPriceList", "post /price_lists", {
  summary: "Makes a price list; `default` takes the place of the settings' prices",
  request: bodyOf(newPriceListSchema),
  answer: answered,
});
const show = defineRoute("showPriceList", "get /price_lists/{name}", {
  summary: "One price list",
  request: { params: nameParameter },
  answer: answered,
});
const change = defineRoute("changePriceList", "patch /price_lists/{name}", {
  summary: "Changes the prices to come of a list; none that has begun",
  request: { params: nameParameter, headers: versionHeader, ...bodyOf(priceListPatchSchema) },
  answer: answered,
});

/** Adds the routes about price lists; `prices` are those of the settings. */
export function addPriceRoutes(app: OperatorApp, { prices }: { readonly prices: Prices }): void {
  app.openapi(list, async (context) => {
    const { cursor, limit } = context.req.valid("query");
    const page = { after: nameOfCursor(cursor), rowsMax: limit + 1, settings: prices };
    const rows = await context.get("ledger").pagePriceLists(page);
    const parts = { toJson: priceListToJson, cursorOf: (row: PriceList) => row.name };
    return context.json(pageOf(rows, limit, parts), 200);
  });
  app.openapi(create, async (context) => {
    const { name, prices: given } = context.req.valid("json");
    const ledger = await administer(context);
    const made = await ledger.createPriceList({ name, prices: askedPricesOf(given) });
    return context.json(priceListToJson(made), 200);
  });
  app.openapi(show, async (context) => {
    const asked = { name: context.req.valid("param").name, settings: prices };
    return context.json(priceListToJson(await context.get("ledger").showPriceList(asked)), 200);
  });
  app.openapi(change, async (context) => {
    const { prices: given } = context.req.valid("json");
    const ledger = await administer(context);
    const changed = await ledger.changePriceList({
      name: context.req.valid("param").name,
      prices: given === undefined ? null : askedPricesOf(given),
    });
    return context.json(priceListToJson(changed), 200);
  });
}
