import { limits } from "../../limits.ts";
import { eventColumns, eventOf, type EventRecord, eventTypes } from "../event-record.ts";
import { OperatorError } from "../operator-error.ts";
import { numberOf, numberOrNullOf, type Row, textOf, textOrNullOf } from "../row.ts";
import {
  type DeliveryRecord,
  fingerprintOf,
  webhookColumns,
  webhookOf,
  type WebhookId,
  type WebhookRecord,
} from "../webhook.ts";
import { audit, type AuditFacts } from "./audit.ts";
import { type ChangeContext, ensureVersion } from "./changed-by.ts";
import { addDelivery } from "./event-desk.ts";
import { ask, askOne, type StatementValue, type Steps } from "./steps.ts";

/** What of a webhook its operator sets. */
export interface WebhookSettings {
  readonly url: string;
  readonly description: string;
  /** null: all. */
  readonly types: readonly string[] | null;
  readonly status: WebhookRecord["status"];
}

/** What of a webhook to change; absent: as it is. */
export type WebhookPatch = {
  readonly [Name in keyof WebhookSettings]?: WebhookSettings[Name] | undefined;
};

/** Makes a webhook, which gets what happens from now on. */
export function* createWebhook(
  order: WebhookSettings & { readonly id: WebhookId; readonly secret: Uint8Array },
  context: ChangeContext,
): Steps<WebhookRecord> {
  ensureSettings(order);
  const count = yield* askOne(
    "select count(*) as count from tributary.webhook where status <> 'deleted'",
  );
  if (count !== null && numberOf(count, "count") >= limits.webhooksMax)
    throw new OperatorError(
      "not_possible",
      `There are ${String(limits.webhooksMax)} webhooks, which is as many as there may be. Delete one that is not needed.`,
    );
  yield* ask(
    `insert into tributary.webhook (id, url, description, types_json, status, secret, created_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    order.id,
    order.url,
    order.description,
    typesJson(order.types),
    order.status,
    order.secret,
    context.nowMs,
  );
  const webhook = yield* showWebhook(order.id);
  const after = factsOf(webhook);
  yield* audit(context, { action: "webhook.create", target: order.id, before: null, after });
  return webhook;
}

/** All webhooks, oldest first. */
export function* listWebhooks(): Steps<readonly WebhookRecord[]> {
  const rows = yield* ask(
    `select ${webhookColumns} from tributary.webhook where status <> 'deleted' order by created_at_ms, id`,
  );
  return rows.map(webhookOf);
}

/** Throws an OperatorError where there is no such webhook. */
export function* showWebhook(id: string): Steps<WebhookRecord> {
  return webhookOf(yield* ensureWebhook(id));
}

/** Changes what is given. */
export function* changeWebhook(
  { id, ...to }: WebhookPatch & { readonly id: string },
  context: ChangeContext,
): Steps<WebhookRecord> {
  const before = yield* lockWebhook(id, context);
  const after = { ...before, ...settingsOf(to) };
  ensureSettings(after);
  yield* ask(
    `update tributary.webhook set url = $2, description = $3, types_json = $4, status = $5, version = version + 1
     where id = $1`,
    id,
    after.url,
    after.description,
    typesJson(after.types),
    after.status,
  );
  const action = "webhook.change";
  yield* audit(context, { action, target: id, before: factsOf(before), after: factsOf(after) });
  return { ...after, version: before.version + 1 };
}

/** Takes a webhook away with its deliveries: at once for everything that looks, row by row in the background. */
export function* deleteWebhook(
  { id }: { readonly id: string },
  context: ChangeContext,
): Steps<WebhookRecord> {
  const before = yield* lockWebhook(id, context);
  yield* ask("update tributary.webhook set status = 'deleted' where id = $1", id);
  yield* audit(context, {
    action: "webhook.delete",
    target: id,
    before: factsOf(before),
    after: null,
  });
  return before;
}

/** A new secret; that of before signs too for the time of the overlap. */
export function* rotateWebhook(
  order: { readonly id: string; readonly secret: Uint8Array; readonly overlapMs: number },
  context: ChangeContext,
): Steps<{ readonly record: WebhookRecord; readonly fingerprint: string }> {
  const { id, overlapMs, secret } = order;
  const before = yield* lockWebhook(id, context);
  const untilMs = overlapMs === 0 ? null : context.nowMs + overlapMs;
  yield* ask(
    `update tributary.webhook set old_secret = ${overlapMs === 0 ? "null" : "secret"}, secret = $2,
       old_secret_until_ms = $3, version = version + 1 where id = $1`,
    id,
    secret,
    untilMs,
  );
  const after = { overlap_seconds: Math.round(overlapMs / 1_000) };
  yield* audit(context, { action: "webhook.rotate", target: id, before: null, after });
  const record = { ...before, oldSecretUntilMs: untilMs, version: before.version + 1 };
  return { record, fingerprint: fingerprintOf(secret) };
}

/** An event for this webhook alone, of something that has not happened. */
export function* testWebhook(
  order: { readonly id: string; readonly eventId: string },
  context: ChangeContext,
): Steps<DeliveryRecord> {
  const webhook = webhookOf(yield* ensureWebhook(order.id));
  ensureActive(webhook);
  yield* ask(
    "insert into tributary.event_desk (id, positions) values (1, 0) on conflict do nothing",
  );
  const desk = yield* askOne(
    "select positions from tributary.event_desk where id = 1 for no key update",
  );
  const highest = yield* askOne(
    "select coalesce(max(position), 0) as highest from tributary.event",
  );
  if (desk === null || highest === null) throw new Error("ledger: the desk of events is missing");
  const position = Math.max(numberOf(desk, "positions"), numberOf(highest, "highest")) + 1;
  yield* ask("update tributary.event_desk set positions = $1 where id = 1", position);
  yield* ask(
    `insert into tributary.event (position, id, at_ms, type, facts_json) values ($1, $2, $3, $4, $5)`,
    position,
    order.eventId,
    context.nowMs,
    testType,
    JSON.stringify({ webhook: webhook.id }),
  );
  const { eventId } = order;
  yield* addDelivery({ webhookId: webhook.id, position, eventId, accountId: null }, context.nowMs);
  const after = { event: eventId };
  yield* audit(context, { action: "webhook.test", target: webhook.id, before: null, after });
  return yield* ensureDelivery(webhook.id, eventId);
}

/** Begins the delivery of an event anew, with all its tries. */
export function* resendDelivery(
  { eventId, id }: { readonly id: string; readonly eventId: string },
  context: ChangeContext,
): Steps<DeliveryRecord> {
  ensureActive(webhookOf(yield* ensureWebhook(id)));
  const before = yield* ensureDelivery(id, eventId);
  yield* ask(
    `update tributary.delivery set state = 'pending', tries = 0, next_at_ms = $3 where webhook_id = $1 and position = $2`,
    id,
    before.event.position,
    context.nowMs,
  );
  yield* audit(context, {
    action: "webhook.resend",
    target: id,
    before: { event: eventId, state: before.state },
    after: { event: eventId, state: "pending" },
  });
  return yield* ensureDelivery(id, eventId);
}

/** Deliveries of a webhook, of the newest event first. */
export function* pageDeliveries(query: {
  readonly id: string;
  readonly state: DeliveryRecord["state"] | null;
  /** Those of events before this position; null: from the newest. */
  readonly before: number | null;
  readonly rowsMax: number;
}): Steps<readonly DeliveryRecord[]> {
  yield* ensureWebhook(query.id);
  const values: StatementValue[] = [query.id, query.before ?? Number.MAX_SAFE_INTEGER];
  if (query.state !== null) values.push(query.state);
  const rows = yield* ask(
    `${findDelivery} and d.position < $2 ${query.state === null ? "" : "and d.state = $3"}
     order by d.position desc limit ${String(query.rowsMax)}`,
    ...values,
  );
  return rows.map(deliveryOf);
}

/** Events behind a position, in their order. `lost`: some behind it are older than what is kept. */
export function* pageEvents(query: {
  readonly after: number;
  readonly accountId: string | null;
  readonly type: string | null;
  readonly rowsMax: number;
}): Steps<{ readonly rows: readonly EventRecord[]; readonly lost: boolean }> {
  const kept = yield* askOne(
    `select coalesce((select min(position) from tributary.event),
       (select positions + 1 from tributary.event_desk where id = 1), 1) as first`,
  );
  const first = kept === null ? 1 : numberOf(kept, "first");
  const filters = [
    ["account_id", query.accountId],
    ["type", query.type],
  ] as const;
  const wanted = filters.filter(([, value]) => value !== null);
  const where = wanted.map(([column], at) => ` and ${column} = $${String(at + 3)}`).join("");
  const rows = yield* ask(
    `select ${eventColumns} from tributary.event where position > $1 and type <> $2${where}
     order by position limit ${String(query.rowsMax)}`,
    query.after,
    testType,
    ...wanted.map(([, value]) => value),
  );
  return { rows: rows.map(eventOf), lost: query.after > 0 && query.after + 1 < first };
}

const testType = "webhook.test";

const findDelivery = `select ${eventColumns.replaceAll(/(\w+)/g, "e.$1")}, d.state, d.tries, d.next_at_ms, d.tried_at_ms,
    d.status_code, d.error, d.duration_ms
  from tributary.delivery d join tributary.event e on e.position = d.position where d.webhook_id = $1`;

/** The webhook that is about to be changed, which has the version that the change was made for. */
function* lockWebhook(id: string, context: ChangeContext): Steps<WebhookRecord> {
  const webhook = webhookOf(yield* ensureWebhook(id, " for no key update"));
  ensureVersion(webhook.version, context);
  return webhook;
}

function* ensureWebhook(id: string, lock = ""): Steps<Row> {
  const row = yield* askOne(
    `select ${webhookColumns} from tributary.webhook where id = $1 and status <> 'deleted'${lock}`,
    id,
  );
  if (row !== null) return row;
  throw new OperatorError(
    "not_found",
    `There is no webhook ${id}. \`GET /api/v1/webhooks\` lists those of this service.`,
    { param: "id" },
  );
}

function* ensureDelivery(id: string, eventId: string): Steps<DeliveryRecord> {
  const row = yield* askOne(`${findDelivery} and d.event_id = $2`, id, eventId);
  if (row !== null) return deliveryOf(row);
  throw new OperatorError(
    "not_found",
    `There is no delivery of ${eventId} to ${id}. Events are kept for ${String(limits.eventsKeptMs / 86_400_000)} days.`,
    { param: "event" },
  );
}

function ensureActive({ id, status }: WebhookRecord): void {
  if (status === "paused")
    throw new OperatorError(
      "not_possible",
      `${id} is paused. Set its status to active, and nothing needs to be sent again: what has happened meanwhile follows.`,
      { param: "id" },
    );
}

function ensureSettings({ description, types, url }: WebhookSettings): void {
  if (url.length > limits.webhookUrlCharactersMax)
    throw new OperatorError(
      "invalid_value",
      `The url of a webhook has at most ${String(limits.webhookUrlCharactersMax)} characters.`,
      { param: "url" },
    );
  if (description.length > limits.noteCharactersMax)
    throw new OperatorError(
      "invalid_value",
      `The description of a webhook has at most ${String(limits.noteCharactersMax)} characters.`,
      { param: "description" },
    );
  const unknown = types?.find((type) => !(eventTypes as readonly string[]).includes(type));
  if (unknown !== undefined || types?.length === 0)
    throw new OperatorError(
      "invalid_value",
      `${unknown === undefined ? "No type" : JSON.stringify(unknown)} is no type of event. There are ${eventTypes.join(", ")}; null means all.`,
      { param: "types" },
    );
}

function typesJson(types: readonly string[] | null): string | null {
  return types === null ? null : JSON.stringify(types);
}

function factsOf({ description, status, types, url }: WebhookSettings): AuditFacts {
  return { url, description, status, types: types === null ? null : types.join(" ") };
}

// An order has more than settings: what is kept under an idempotency-key is the webhook alone.
function settingsOf({ description, status, types, url }: WebhookPatch): Partial<WebhookSettings> {
  const settings = { description, status, types, url };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

function deliveryOf(row: Row): DeliveryRecord {
  const state = textOf(row, "state") as DeliveryRecord["state"];
  return {
    event: eventOf(row),
    state,
    tries: numberOf(row, "tries"),
    nextTryAtMs: state === "pending" ? numberOf(row, "next_at_ms") : null,
    triedAtMs: numberOrNullOf(row, "tried_at_ms"),
    statusCode: numberOrNullOf(row, "status_code"),
    error: textOrNullOf(row, "error"),
    durationMs: numberOrNullOf(row, "duration_ms"),
  };
}

/** What of webhooks has not gone well, or not yet. */
export interface WebhookBacklog {
  /** Deliveries of active webhooks that wait for their first or their next try. */
  readonly pending: number;
  /** Webhooks of which an event used up its tries. */
  readonly failing: number;
}

/** Adds it up: by the index of what is pending, which delivered events are not in. */
export function* webhookBacklog(): Steps<WebhookBacklog> {
  const row = yield* askOne(
    `select (select count(*) from tributary.webhook w join tributary.delivery d on d.webhook_id = w.id
         where w.status = 'active' and d.state = 'pending') as pending,
       (select count(*) from tributary.webhook
         where status = 'active' and failing_since_ms is not null) as failing`,
  );
  if (row === null) return { pending: 0, failing: 0 };
  return { pending: numberOf(row, "pending"), failing: numberOf(row, "failing") };
}
