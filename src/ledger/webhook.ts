import { hash, randomBytes } from "node:crypto";
import type { EventRecord } from "./event-record.ts";
import { numberOf, numberOrNullOf, type Row, textOf, textOrNullOf } from "./row.ts";

/** Public id of a webhook: `hook_` and letters and digits. */
export type WebhookId = `hook_${string}`;

/** An endpoint that gets events, without its secret. */
export interface WebhookRecord {
  readonly id: WebhookId;
  readonly url: string;
  readonly description: string;
  /** The types of events that it gets; null: all. */
  readonly types: readonly string[] | null;
  readonly status: "active" | "paused";
  /** Since when a delivery has run out of tries and none has come through; null: it works. */
  readonly failingSinceMs: number | null;
  /** Until when the secret before the last rotation signs too; null: it does not. */
  readonly oldSecretUntilMs: number | null;
  readonly createdAtMs: number;
  /** Goes up with each change by an operator. */
  readonly version: number;
}

/** How the delivery of one event to one webhook stands. */
export interface DeliveryRecord {
  readonly event: EventRecord;
  readonly state: "pending" | "delivered" | "failed";
  readonly tries: number;
  /** null: it is not tried again. */
  readonly nextTryAtMs: number | null;
  readonly triedAtMs: number | null;
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly durationMs: number | null;
}

/** A delivery that is due, with all that a try needs. */
export interface DueDelivery {
  readonly webhookId: WebhookId;
  readonly url: string;
  /** The newest secret first; while a rotation lasts the one before, too. */
  readonly secrets: readonly Uint8Array[];
  readonly event: EventRecord;
  readonly tries: number;
}

/** How one try went. */
export interface DeliveryTry {
  readonly webhookId: WebhookId;
  readonly position: number;
  /** How many tries there were before. */
  readonly tries: number;
  readonly delivered: boolean;
  readonly statusCode: number | null;
  /** What went wrong, for the operator; null: nothing. */
  readonly error: string | null;
  readonly durationMs: number;
}

/** The columns that `webhookOf` reads. */
export const webhookColumns =
  "id, url, description, types_json, status, failing_since_ms, old_secret_until_ms, created_at_ms, version";

/** A webhook, from columns of these names. */
export function webhookOf(row: Row): WebhookRecord {
  return {
    id: textOf(row, "id") as WebhookId,
    url: textOf(row, "url"),
    description: textOf(row, "description"),
    types: typesOf(row),
    status: textOf(row, "status") === "active" ? "active" : "paused",
    failingSinceMs: numberOrNullOf(row, "failing_since_ms"),
    oldSecretUntilMs: numberOrNullOf(row, "old_secret_until_ms"),
    createdAtMs: numberOf(row, "created_at_ms"),
    version: numberOf(row, "version"),
  };
}

/** The types of events that a webhook gets, from its column; null: all. */
export function typesOf(row: Row): readonly string[] | null {
  const json = textOrNullOf(row, "types_json");
  return json === null ? null : (JSON.parse(json) as readonly string[]);
}

const secretPrefix = "whsec_";

/** 256 bits, as the signature has. */
const secretBytes = 32;

/** A new secret: `shown` is how its receiver gets to know it, once. */
export function newWebhookSecret(): { readonly secret: Uint8Array; readonly shown: string } {
  const secret = new Uint8Array(randomBytes(secretBytes));
  return { secret, shown: secretPrefix + Buffer.from(secret).toString("base64") };
}

/** Tells secrets apart, and says nothing of them. */
export function fingerprintOf(secret: Uint8Array): string {
  return hash("sha256", secret, "hex").slice(0, 16);
}
