import { formatCredit } from "../admission/price.ts";
import { numberOf, type Row, textOf, textOrNullOf } from "./row.ts";

/** What events tell of; `webhook.test` is none of them, as nothing has happened. */
export const eventTypes = [
  "account.low_balance",
  "account.exhausted",
  "account.credited",
  "budget.reached",
  "key.expiring",
  "verify.failed",
  "deployment.down",
  "deployment.up",
] as const;

/** One of them. */
export type EventType = (typeof eventTypes)[number];

/** Figures of an event: plain values; credit as nanos in decimal digits under a name that ends in `_nanos`, times in `_at_ms`. */
export type EventFacts = Readonly<Record<string, string | number | boolean | null>>;

/** Something that has happened. */
export interface EventRecord {
  /** From 1, in the order in which events are given out. */
  readonly position: number;
  readonly id: string;
  readonly atMs: number;
  readonly type: string;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly facts: EventFacts;
}

/** The columns that `eventOf` reads. */
export const eventColumns = "position, id, at_ms, type, account_id, key_id, facts_json";

/** An event, from columns of these names. */
export function eventOf(row: Row): EventRecord {
  return {
    position: numberOf(row, "position"),
    id: textOf(row, "id"),
    atMs: numberOf(row, "at_ms"),
    type: textOf(row, "type"),
    accountId: textOrNullOf(row, "account_id"),
    keyId: textOrNullOf(row, "key_id"),
    facts: factsOf(textOf(row, "facts_json")),
  };
}

/** The facts that a column holds. */
export function factsOf(json: string): EventFacts {
  // Triggers and functions of this folder alone write the column.
  return JSON.parse(json) as EventFacts;
}

/** An event as `GET /events` answers it. */
export interface EventJson {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: EventFacts;
}

/** An event as `GET /events` answers it and as webhooks carry it: the same bytes each time. */
export function eventToJson(event: EventRecord): EventJson {
  const { accountId, atMs, facts, id, keyId, type } = event;
  const data = {
    ...(accountId === null ? {} : { account: accountId }),
    ...(keyId === null ? {} : { key: keyId }),
    ...Object.fromEntries(Object.entries(facts).map(factToJson)),
  };
  return { id, type, timestamp: new Date(atMs).toISOString(), data };
}

function factToJson([name, value]: [string, EventFacts[string]]): [string, EventFacts[string]] {
  if (typeof value === "string" && name.endsWith("_nanos"))
    return [name.slice(0, -"_nanos".length), formatCredit(BigInt(value))];
  if (typeof value === "number" && name.endsWith("_at_ms"))
    return [name.slice(0, -"_ms".length), new Date(value).toISOString()];
  return [name, value];
}
