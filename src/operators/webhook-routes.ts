import { z } from "@hono/zod-openapi";
import { eventTypes } from "../ledger/event-record.ts";
import type { WebhookRecord } from "../ledger/webhook.ts";
import { type PrivateAddresses, urlProblem } from "../webhooks/endpoint-address.ts";
import { numberOfCursor, pageOf, pageOfAll, pageParameters, pageSchema } from "./paging.ts";
import { versionHeader } from "./if-match.ts";
import { ProblemError } from "./problem.ts";
import { administer, bodyOf, defineRoute, idOf, type OperatorApp } from "./route.ts";
import { showOnce } from "./schemas.ts";
import {
  deliverySchema,
  deliveryToJson,
  eventsSchema,
  eventsToJson,
  newWebhookSchema,
  shownWebhookSchema,
  webhookPatchSchema,
  webhookRotationSchema,
  webhookSchema,
  webhookToJson,
} from "./webhook-schemas.ts";

const idParameter = idOf("hook_5nXbTrMv2kQ0aZe");
const answered = { description: "the webhook", schema: webhookSchema } as const;
const queued = {
  status: 202,
  description: "the delivery, which is due",
  schema: deliverySchema,
} as const;

const list = defineRoute("listWebhooks", "get /webhooks", {
  summary: "All webhooks, oldest first",
  request: { query: z.strictObject(pageParameters) },
  answer: { description: "a page of webhooks", schema: pageSchema(webhookSchema, "Webhook") },
});
const create = defineRoute("createWebhook", "post /webhooks", {
  summary: "Makes a webhook, which gets what happens from now on; its secret is shown once",
  request: bodyOf(newWebhookSchema),
  answer: { description: "the webhook with its secret", schema: shownWebhookSchema },
});
const show = defineRoute("showWebhook", "get /webhooks/{id}", {
  summary: "One webhook",
  request: { params: idParameter },
  answer: answered,
});
const change = defineRoute("changeWebhook", "patch /webhooks/{id}", {
  summary: "Changes a webhook",
  request: { params: idParameter, headers: versionHeader, ...bodyOf(webhookPatchSchema) },
  answer: answered,
});
const remove = defineRoute("deleteWebhook", "delete /webhooks/{id}", {
  summary: "Takes a webhook away, with what it has not got yet",
  request: { params: idParameter, headers: versionHeader },
  answer: answered,
});
const rotate = defineRoute("rotateWebhook", "post /webhooks/{id}/rotate", {
  summary: "Replaces the secret of a webhook",
  request: { params: idParameter, headers: versionHeader, ...bodyOf(webhookRotationSchema) },
  answer: { description: "the webhook with its secret", schema: shownWebhookSchema },
});
const test = defineRoute("testWebhook", "post /webhooks/{id}/test", {
  summary: "Sends an event of type webhook.test to this webhook alone",
  request: { params: idParameter },
  answer: queued,
});
const deliveries = defineRoute("listDeliveries", "get /webhooks/{id}/deliveries", {
  summary: "What a webhook got and gets, of the newest event first",
  request: {
    params: idParameter,
    query: z.strictObject({
      ...pageParameters,
      state: z.enum(["pending", "delivered", "failed"]).optional(),
    }),
  },
  answer: { description: "a page of deliveries", schema: pageSchema(deliverySchema, "Delivery") },
});
const resend = defineRoute("resendDelivery", "post /webhooks/{id}/deliveries/{event}/resend", {
  summary: "Sends an event again, with all its tries",
  request: {
    params: idParameter.extend({ event: z.string().openapi({ example: "evt_5nXbTrMv2kQ0aZe" }) }),
  },
  answer: queued,
});
const events = defineRoute("listEvents", "get /events", {
  summary: "What has happened since a cursor, oldest first: what webhooks carry, for 30 days",
  request: {
    query: z.strictObject({
      ...pageParameters,
      account: z.string().optional(),
      type: z.enum(eventTypes).optional(),
    }),
  },
  answer: { description: "a page of events", schema: eventsSchema },
});

/** Adds the routes about webhooks and events. */
export function addWebhookRoutes(
  app: OperatorApp,
  { privateAddresses }: { readonly privateAddresses: PrivateAddresses },
): void {
  app.openapi(list, async (context) => {
    const all = await context.get("ledger").listWebhooks();
    return context.json(pageOfAll(all, context.req.valid("query"), webhookToJson), 200);
  });
  app.openapi(create, async (context) => {
    const { description = "", status = "active", types = null, url } = context.req.valid("json");
    ensureUrl(url, privateAddresses);
    const ledger = await administer(context);
    const made = await ledger.createWebhook({ url, description, types, status });
    return context.json(shown(made), 200);
  });
  app.openapi(show, async (context) => {
    const webhook = await context.get("ledger").showWebhook(context.req.valid("param").id);
    return context.json(webhookToJson(webhook), 200);
  });
  app.openapi(change, async (context) => {
    const to = context.req.valid("json");
    if (to.url !== undefined) ensureUrl(to.url, privateAddresses);
    const ledger = await administer(context);
    const webhook = await ledger.changeWebhook(context.req.valid("param").id, to);
    return context.json(webhookToJson(webhook), 200);
  });
  app.openapi(remove, async (context) => {
    const ledger = await administer(context);
    return context.json(
      webhookToJson(await ledger.deleteWebhook(context.req.valid("param").id)),
      200,
    );
  });
  app.openapi(rotate, async (context) => {
    const { overlap_seconds: seconds = 0 } = context.req.valid("json");
    const ledger = await administer(context);
    const { id } = context.req.valid("param");
    return context.json(shown(await ledger.rotateWebhook(id, seconds * 1_000)), 200);
  });
  addDeliveryRoutes(app);
}

function addDeliveryRoutes(app: OperatorApp): void {
  app.openapi(test, async (context) => {
    const ledger = await administer(context);
    return context.json(
      deliveryToJson(await ledger.testWebhook(context.req.valid("param").id)),
      202,
    );
  });
  app.openapi(deliveries, async (context) => {
    const { cursor, limit, state = null } = context.req.valid("query");
    const { id } = context.req.valid("param");
    const query = { id, state, before: numberOfCursor(cursor), rowsMax: limit + 1 };
    const rows = await context.get("ledger").pageDeliveries(query);
    const parts = {
      toJson: deliveryToJson,
      cursorOf: ({ event }: (typeof rows)[number]) => String(event.position),
    };
    return context.json(pageOf(rows, limit, parts), 200);
  });
  app.openapi(resend, async (context) => {
    const ledger = await administer(context);
    const { event, id } = context.req.valid("param");
    return context.json(deliveryToJson(await ledger.resendDelivery(id, event)), 202);
  });
  app.openapi(events, async (context) => {
    const { account: accountId = null, cursor, limit, type = null } = context.req.valid("query");
    const after = numberOfCursor(cursor) ?? 0;
    const page = await context.get("ledger").pageEvents({ after, accountId, type, rowsMax: limit });
    if (page.lost)
      throw new ProblemError({
        status: 410,
        code: "cursor_expired",
        detail:
          "Events behind this cursor are older than 30 days and are not kept any more. Begin anew without a cursor, and look at accounts and keys for what is missing.",
        param: "cursor",
      });
    return context.json(eventsToJson(page.rows, after), 200);
  });
}

function shown(made: { readonly record: WebhookRecord; readonly secret: string | null }) {
  return { ...webhookToJson(made.record), ...showOnce(made.secret) };
}

function ensureUrl(url: string, privateAddresses: PrivateAddresses): void {
  const problem = urlProblem(url, privateAddresses);
  if (problem === null) return;
  throw new ProblemError({
    status: 400,
    code: "invalid_value",
    detail: `\`url\` ${problem}.`,
    param: "url",
  });
}
