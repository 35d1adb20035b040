import type { EventFacts, EventType } from "../event-record.ts";
import { ask, type Steps } from "./steps.ts";

/** What is written of an event before it has its place. */
export interface OutboxEvent {
  readonly type: EventType;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly facts: EventFacts;
}

/** Writes an event in the transaction that causes it. */
export function* writeEvent(event: OutboxEvent, nowMs: number): Steps<void> {
  yield* ask(
    `insert into tributary.outbox (type, account_id, key_id, entry, at_ms, facts_json)
     values ($1, $2, $3, null, $4, $5)`,
    event.type,
    event.accountId,
    event.keyId,
    nowMs,
    JSON.stringify(event.facts),
  );
}
