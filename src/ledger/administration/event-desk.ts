import { limits } from "../../limits.ts";
import { eventColumns, type EventFacts, eventOf, factsOf } from "../event-record.ts";
import { bytesOf, numberOf, numberOrNullOf, type Row, textOf, textOrNullOf } from "../row.ts";
import { type DeliveryTry, type DueDelivery, typesOf, type WebhookId } from "../webhook.ts";
import { ask, askOne, type Steps } from "./steps.ts";

// The desk is one row: who has it gives positions to what has happened, and delivers it. Transactions of PostgreSQL commit
// in another order than that in which they drew numbers, so that a number could become visible after a higher one was
// given out. A position is drawn under the row's lock, which is kept until its commit: when one is visible, all before
// it are.

type Context = { readonly nowMs: number };

/** Who asks for the desk. */
export interface DeskOrder {
  readonly holder: string;
  /** Random letters, which no other order has: ids of events are made of them. */
  readonly seed: string;
}

/** What the holder of the desk has to do. */
export interface DeskWork {
  /** The first of each account's that is due, for each webhook. */
  readonly due: readonly DueDelivery[];
  /** The types of what this call gave out. */
  readonly givenOut: readonly string[];
  /** Whether more was in the outbox than one call takes. */
  readonly more: boolean;
}

/** Takes the desk, or keeps it, where there is anything to do; null: there is nothing, or another process has it. */
export function* takeDesk({ holder, seed }: DeskOrder, { nowMs }: Context): Steps<DeskWork | null> {
  if (!(yield* isWanted(holder, nowMs))) return null;
  const find = "select holder, until_ms, positions from tributary.event_desk where id = 1";
  yield* ask(
    "insert into tributary.event_desk (id, positions) values (1, 0) on conflict do nothing",
  );
  const desk = yield* askOne(`${find} for no key update`);
  if (desk === null || isOfAnother(desk, holder, nowMs)) return null;
  if (textOrNullOf(desk, "holder") !== holder || isHalfOver(desk, nowMs))
    yield* ask(
      "update tributary.event_desk set holder = $1, until_ms = $2 where id = 1",
      holder,
      nowMs + limits.deskLeaseMs,
    );
  const givenOut = yield* publish(numberOf(desk, "positions"), seed, nowMs);
  const more = givenOut.length === limits.eventsTakenMax;
  return { due: yield* findDue(nowMs), givenOut, more };
}

/** Gives the desk back, so that another process may have it at once. */
export function* leaveDesk({ holder }: { readonly holder: string }): Steps<null> {
  yield* ask(
    "update tributary.event_desk set holder = null, until_ms = 0 where id = 1 and holder = $1",
    holder,
  );
  return null;
}

/** Writes down how a try went; one that was counted already, or whose delivery was begun anew, changes nothing. */
export function* finishTry(
  one: DeliveryTry,
  { nowMs }: Context,
): Steps<{ readonly failing: boolean }> {
  const { delivered, position, tries, webhookId } = one;
  const delayMs = delivered ? null : (limits.webhookRetriesMs[tries] ?? null);
  const state = delivered ? "delivered" : delayMs === null ? "failed" : "pending";
  const row = yield* askOne(
    `update tributary.delivery set state = $4, tries = tries + 1, next_at_ms = $5, tried_at_ms = $6, status_code = $7,
       error = $8, duration_ms = $9
     where webhook_id = $1 and position = $2 and state = 'pending' and tries = $3 returning event_id`,
    webhookId,
    position,
    tries,
    state,
    nowMs + (delayMs ?? 0),
    nowMs,
    one.statusCode,
    one.error,
    one.durationMs,
  );
  if (row === null || state === "pending") return { failing: false };
  const failing = yield* askOne(
    delivered
      ? "update tributary.webhook set failing_since_ms = null where id = $1 and failing_since_ms is not null returning id"
      : `update tributary.webhook set failing_since_ms = ${String(nowMs)} where id = $1 and failing_since_ms is null returning id`,
    webhookId,
  );
  return { failing: !delivered && failing !== null };
}

/** Forgets events that are older than 30 days with their deliveries, and deleted webhooks; false: there may be more. */
export function* forgetEvents(_order: object, { nowMs }: Context): Steps<boolean> {
  const rows = yield* ask(
    `select position, at_ms from tributary.event order by position limit ${String(limits.eventsForgottenMax)}`,
  );
  const kept = rows.findIndex((row) => numberOf(row, "at_ms") > nowMs - limits.eventsKeptMs);
  const old = rows
    .slice(0, kept === -1 ? rows.length : kept)
    .map((row) => numberOf(row, "position"));
  const last = old.at(-1);
  if (last !== undefined) {
    yield* ask("delete from tributary.delivery where position <= $1", last);
    yield* ask("delete from tributary.event where position <= $1", last);
  }
  const deleted = yield* ask("select id from tributary.webhook where status = 'deleted'");
  let left = false;
  for (const row of deleted) left = (yield* forgetWebhook(textOf(row, "id"))) || left;
  return !left && old.length < limits.eventsForgottenMax;
}

function* forgetWebhook(id: string): Steps<boolean> {
  const rows = yield* ask(
    `select position from tributary.delivery where webhook_id = $1 order by position limit ${String(limits.eventsForgottenMax)}`,
    id,
  );
  const last = rows.at(-1);
  if (last !== undefined)
    yield* ask(
      "delete from tributary.delivery where webhook_id = $1 and position <= $2",
      id,
      numberOf(last, "position"),
    );
  if (rows.length === limits.eventsForgottenMax) return true;
  yield* ask("delete from tributary.webhook where id = $1 and status = 'deleted'", id);
  return false;
}

/** One statement, which most looks end with. */
function* isWanted(holder: string, nowMs: number): Steps<boolean> {
  const row = yield* askOne(
    `select (select holder from tributary.event_desk where id = 1) as holder,
       (select until_ms from tributary.event_desk where id = 1) as until_ms,
       case when exists (select 1 from tributary.outbox) then 1 else 0 end as waiting,
       case when exists (select 1 from tributary.webhook w join tributary.delivery d on d.webhook_id = w.id
         where w.status = 'active' and d.state = 'pending' and d.next_at_ms <= $1) then 1 else 0 end as due`,
    nowMs,
  );
  if (row === null || isOfAnother(row, holder, nowMs)) return false;
  return numberOf(row, "waiting") === 1 || numberOf(row, "due") === 1;
}

/** A lease that ends later than any can is of a clock that was ahead. */
function isOfAnother(desk: Row, holder: string, nowMs: number): boolean {
  const its = textOrNullOf(desk, "holder");
  const untilMs = numberOrNullOf(desk, "until_ms") ?? 0;
  return (
    its !== null && its !== holder && untilMs > nowMs && untilMs <= nowMs + 2 * limits.deskLeaseMs
  );
}

function isHalfOver(desk: Row, nowMs: number): boolean {
  const leftMs = numberOf(desk, "until_ms") - nowMs;
  return leftMs < limits.deskLeaseMs / 2 || leftMs > limits.deskLeaseMs;
}

/** Gives what is in the outbox its positions, and each webhook its deliveries; answers of which types they were. */
function* publish(positions: number, seed: string, nowMs: number): Steps<readonly string[]> {
  const rows = yield* ask(
    `select sequence, type, account_id, key_id, entry, at_ms, facts_json from tributary.outbox
     order by sequence limit ${String(limits.eventsTakenMax)}`,
  );
  if (rows.length === 0) return [];
  // A ledger that was moved or restored may have positions that its desk does not know of.
  const highest = yield* askOne(
    "select coalesce(max(position), 0) as highest from tributary.event",
  );
  let position = Math.max(positions, highest === null ? 0 : numberOf(highest, "highest"));
  const webhooks = yield* ask(
    "select id, types_json from tributary.webhook where status <> 'deleted' order by id",
  );
  for (const row of rows) {
    position += 1;
    const event = { position, id: `evt_${seed}${String(position)}`, row };
    yield* publishOne(event, webhooks, nowMs);
  }
  yield* ask("update tributary.event_desk set positions = $1 where id = 1", position);
  return rows.map((row) => textOf(row, "type"));
}

function* publishOne(
  { id, position, row }: { readonly id: string; readonly position: number; readonly row: Row },
  webhooks: readonly Row[],
  nowMs: number,
): Steps<void> {
  const type = textOf(row, "type");
  const accountId = textOrNullOf(row, "account_id");
  const { atMs, facts } = yield* withItsEntry(row, nowMs);
  yield* ask(
    `insert into tributary.event (position, id, at_ms, type, account_id, key_id, facts_json)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    position,
    id,
    atMs,
    type,
    accountId,
    textOrNullOf(row, "key_id"),
    JSON.stringify(facts),
  );
  for (const webhook of webhooks)
    if (typesOf(webhook)?.includes(type) !== false)
      yield* addDelivery(
        { webhookId: textOf(webhook, "id"), position, eventId: id, accountId },
        nowMs,
      );
  yield* ask("delete from tributary.outbox where sequence = $1", numberOf(row, "sequence"));
}

/** Adds a delivery that is due at once. */
export function* addDelivery(
  delivery: {
    readonly webhookId: string;
    readonly position: number;
    readonly eventId: string;
    readonly accountId: string | null;
  },
  nowMs: number,
): Steps<void> {
  yield* ask(
    `insert into tributary.delivery (webhook_id, position, event_id, account_id, state, next_at_ms)
     values ($1, $2, $3, $4, 'pending', $5)`,
    delivery.webhookId,
    delivery.position,
    delivery.eventId,
    delivery.accountId,
    nowMs,
  );
}

/** An event that an entry caused has the time of the entry, and says which it was. */
function* withItsEntry(
  row: Row,
  nowMs: number,
): Steps<{ readonly atMs: number; readonly facts: EventFacts }> {
  const facts = factsOf(textOf(row, "facts_json"));
  const sequence = numberOrNullOf(row, "entry");
  const ownMs = numberOrNullOf(row, "at_ms");
  if (sequence === null) return { atMs: ownMs ?? nowMs, facts };
  const entry = yield* askOne(
    "select at_ms, kind, reference from tributary.entry where account_id = $1 and sequence = $2",
    textOrNullOf(row, "account_id"),
    sequence,
  );
  // A checkpoint has taken it away.
  if (entry === null) return { atMs: ownMs ?? nowMs, facts: { ...facts, entry: sequence } };
  const reference = textOrNullOf(entry, "reference");
  const its = { entry: sequence, kind: textOf(entry, "kind"), reference };
  return { atMs: numberOf(entry, "at_ms"), facts: { ...facts, ...its } };
}

/** Of each webhook and account the first that is due: the next one leaves when that was tried. */
function* findDue(nowMs: number): Steps<readonly DueDelivery[]> {
  const webhooks = yield* ask(
    "select id, url, secret, old_secret, old_secret_until_ms from tributary.webhook where status = 'active' order by id",
  );
  const due: DueDelivery[] = [];
  for (const webhook of webhooks) {
    const id = textOf(webhook, "id") as WebhookId;
    const rows = yield* ask(
      `select ${eventColumns.replaceAll(/(\w+)/g, "e.$1")}, d.tries from (
         select min(position) as position from (
           select account_id, position from tributary.delivery
           where webhook_id = $1 and state = 'pending' and next_at_ms <= $2
           order by next_at_ms, position limit ${String(limits.deliveriesLookedAtMax)}
         ) as waiting group by account_id order by 1 limit ${String(limits.deliveriesTakenMax)}
       ) as first
       join tributary.delivery d on d.webhook_id = $1 and d.position = first.position
       join tributary.event e on e.position = first.position order by e.position`,
      id,
      nowMs,
    );
    const secrets = secretsOf(webhook, nowMs);
    for (const row of rows)
      due.push({
        webhookId: id,
        url: textOf(webhook, "url"),
        secrets,
        event: eventOf(row),
        tries: numberOf(row, "tries"),
      });
  }
  return due;
}

function secretsOf(webhook: Row, nowMs: number): readonly Uint8Array[] {
  const secret = bytesOf(webhook, "secret");
  const untilMs = numberOrNullOf(webhook, "old_secret_until_ms");
  if (untilMs === null || untilMs <= nowMs || webhook["old_secret"] === null) return [secret];
  return [secret, bytesOf(webhook, "old_secret")];
}
