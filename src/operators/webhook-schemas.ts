import { z } from "@hono/zod-openapi";
import { type EventRecord, eventToJson, eventTypes } from "../ledger/event-record.ts";
import type { DeliveryRecord, WebhookRecord } from "../ledger/webhook.ts";
import { limits } from "../limits.ts";
import { encodeCursor } from "./paging.ts";
import { isoTime, isoTimeOrNull, shownOnce, time } from "./schemas.ts";

// What the routes about webhooks and events take and answer.

const url = z.string().min(1).max(limits.webhookUrlCharactersMax).openapi({
  description: "https, or http where private networks are allowed",
  example: "https://shop.example/tributary-events",
});
const types = z
  .array(z.enum(eventTypes))
  .min(1)
  .max(eventTypes.length)
  .nullable()
  .openapi({ description: "the types of events that it gets; null: all" });
const description = z.string().max(limits.noteCharactersMax);
const status = z
  .enum(["active", "paused"])
  .openapi({ description: "paused: what happens waits until it is active again, up to 30 days" });

/** A webhook without its secret. */
export const webhookSchema = z
  .object({
    id: z.string(),
    url,
    description,
    types,
    status,
    failing_since: time.nullable().openapi({
      description: "when the tries of an event were used up; null: since then one came through",
    }),
    old_secret_until: time
      .nullable()
      .openapi({ description: "until when the secret before the last rotation signs too" }),
    created_at: time,
    version: z.int().openapi({ description: "goes up with each change; `If-Match` takes it" }),
  })
  .openapi("Webhook");

/** The webhook as `webhookSchema` has it. */
export function webhookToJson(webhook: WebhookRecord): z.infer<typeof webhookSchema> {
  return {
    id: webhook.id,
    url: webhook.url,
    description: webhook.description,
    // The ledger takes no type that is none.
    types: webhook.types as z.infer<typeof types>,
    status: webhook.status,
    failing_since: isoTimeOrNull(webhook.failingSinceMs),
    old_secret_until: isoTimeOrNull(webhook.oldSecretUntilMs),
    created_at: isoTime(webhook.createdAtMs),
    version: webhook.version,
  };
}

/** A webhook with its secret. */
export const shownWebhookSchema = webhookSchema
  .extend({
    ...shownOnce,
    secret: shownOnce.secret.openapi({
      description: "whsec_..., for the receiver to verify by; shown once",
    }),
  })
  .openapi("ShownWebhook");

const settings = {
  description: description.optional(),
  types: types.optional(),
  status: status.optional(),
};

/** A webhook to make. */
export const newWebhookSchema = z.strictObject({ url, ...settings }).openapi("NewWebhook");

/** What of a webhook to change. */
export const webhookPatchSchema = z
  .strictObject({ url: url.optional(), ...settings })
  .openapi("WebhookPatch");

/** How a secret is replaced. */
export const webhookRotationSchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(limits.webhookOverlapMs / 1_000)
      .optional()
      .openapi({
        description: "how long the secret before signs too, up to 30 days; 0 where absent",
      }),
  })
  .openapi("WebhookRotation");

/** What has happened, as webhooks carry it. */
export const eventSchema = z
  .object({
    id: z.string(),
    type: z.string().openapi({ example: "account.low_balance" }),
    timestamp: time,
    data: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .openapi({ description: "ids, amounts of credits as decimal strings, times and counts" }),
  })
  .openapi("Event");

/** Events in their order, with the cursor of what comes after them. */
export const eventsSchema = z
  .object({
    data: z.array(eventSchema),
    next_cursor: z
      .string()
      .openapi({ description: "for the next call, also where there is nothing more yet" }),
  })
  .openapi("EventPage");

/** Events as `eventsSchema` has them; `after` is the position behind which they were asked for. */
export function eventsToJson(
  events: readonly EventRecord[],
  after: number,
): z.infer<typeof eventsSchema> {
  return {
    data: events.map((event) => {
      const { data, ...rest } = eventToJson(event);
      return { ...rest, data: { ...data } };
    }),
    next_cursor: encodeCursor(String(events.at(-1)?.position ?? after)),
  };
}

/** How the delivery of an event stands. */
export const deliverySchema = z
  .object({
    event: eventSchema,
    state: z
      .enum(["pending", "delivered", "failed"])
      .openapi({ description: "failed: its tries are used up" }),
    tries: z.int(),
    next_try_at: time.nullable(),
    tried_at: time.nullable(),
    status_code: z
      .int()
      .nullable()
      .openapi({ description: "of the last try; null: no answer came" }),
    error: z.string().nullable(),
    duration_ms: z.int().nullable(),
  })
  .openapi("Delivery");

/** The delivery as `deliverySchema` has it. */
export function deliveryToJson(delivery: DeliveryRecord): z.infer<typeof deliverySchema> {
  const { data, ...event } = eventToJson(delivery.event);
  return {
    event: { ...event, data: { ...data } },
    state: delivery.state,
    tries: delivery.tries,
    next_try_at: isoTimeOrNull(delivery.nextTryAtMs),
    tried_at: isoTimeOrNull(delivery.triedAtMs),
    status_code: delivery.statusCode,
    error: delivery.error,
    duration_ms: delivery.durationMs,
  };
}
