import { z } from "@hono/zod-openapi";
import { pageOf, pageParameters, pageSchema, startOf } from "./paging.ts";
import { receiptCursor, everyReceipt } from "./report-routes.ts";
import { administer, defineRoute, type OperatorApp } from "./route.ts";
import {
  generationSchema,
  generationToJson,
  refusalSchema,
  refusalToJson,
} from "./service-schemas.ts";
import type { WatchedRefusal, WatchedService } from "./watched-service.ts";

const list = defineRoute("listGenerations", "get /generations", {
  summary: "What runs now, on all replicas, newest first",
  request: { query: z.strictObject(pageParameters) },
  answer: {
    description: "a page of what runs",
    schema: pageSchema(generationSchema, "Generation"),
  },
});
const cancel = defineRoute("cancelGeneration", "delete /generations/{request_id}", {
  summary: "Ends a running request for nothing, within a third of a lease",
  request: {
    params: z.object({ request_id: z.string().openapi({ example: "req_5nXbTrMv2kQ0aZe" }) }),
  },
  answer: { status: 202, description: "it will end soon", schema: generationSchema },
});
const refusals = defineRoute("listRefusals", "get /refusals", {
  summary: "The last 1,000 refusals of the replica that is asked, newest first, from its memory",
  request: { query: z.strictObject(pageParameters) },
  answer: {
    description: "a page of refusals, and since when they are kept",
    schema: pageSchema(refusalSchema, "RefusalList")
      .extend({ replica: z.string(), since: z.iso.datetime() })
      .openapi("RefusalPage"),
  },
});

/** Adds the routes about what runs and what was refused. */
export function addGenerationRoutes(
  app: OperatorApp,
  { service }: { readonly service: WatchedService },
): void {
  app.openapi(list, async (context) => {
    const { cursor, limit } = context.req.valid("query");
    const ledger = context.get("ledger");
    const [rows, cancelled, running] = await Promise.all([
      ledger.pageReceipts({
        ...everyReceipt,
        state: "open",
        after: startOf(cursor),
        rowsMax: limit + 1,
      }),
      ledger.cancelledGenerations(),
      service.running(),
    ]);
    const tokens = new Map(running.map(({ outputTokens, requestId }) => [requestId, outputTokens]));
    const toJson = (receipt: (typeof rows)[number]) =>
      generationToJson(receipt, {
        cancelled: cancelled.includes(receipt.requestId),
        tokens: tokens.get(receipt.requestId) ?? null,
      });
    return context.json(pageOf(rows, limit, { toJson, cursorOf: receiptCursor }), 200);
  });
  app.openapi(cancel, async (context) => {
    const ledger = await administer(context);
    const id = await ledger.cancelGeneration(context.req.valid("param").request_id);
    const receipt = await ledger.showReceipt(id);
    // The replica that is asked need not wait for its next renewal.
    service.look();
    return context.json(generationToJson(receipt, { cancelled: true, tokens: null }), 202);
  });
  app.openapi(refusals, async (context) => {
    const { cursor, limit } = context.req.valid("query");
    const after = startOf(cursor);
    const rows = await service.refusals();
    const from = after === null ? 0 : rows.findIndex(({ requestId }) => requestId === after.id) + 1;
    const shown = from === 0 && after !== null ? [] : rows.slice(from, from + limit + 1);
    const page = pageOf(shown, limit, { toJson: refusalToJson, cursorOf: refusalCursor });
    const since = new Date(service.startedAtMs).toISOString();
    return context.json({ ...page, replica: service.id, since }, 200);
  });
}

function refusalCursor({ atMs, requestId }: WatchedRefusal): string {
  return `${String(atMs)}.${requestId}`;
}
