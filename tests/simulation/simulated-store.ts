import { textOf } from "./prices.ts";
import type { StoreAnswer, StoreCall } from "../../src/ledger/store-operations.ts";

/** Calls of one replica, done together at one moment; each in a place of its own, none spoils another. */
export type Execute = (
  calls: readonly StoreCall[],
) => readonly StoreAnswer[] | Promise<readonly StoreAnswer[]>;

/** One ledger under many replicas, as a run needs it. */
export interface SimulatedStore {
  /** Whose clock stamps a call: the caller's as it sends it, or the store's as it does it. */
  readonly clock: "caller" | "store";
  /** The order in which it does calls that are on their way together; absent: as they were sent. */
  readonly inOrder?: (calls: readonly StoreCall[]) => readonly StoreCall[];
  /** What it forgets by and by of rates: each ticket that has left the window, or a key's when its newest has. */
  readonly forgets: "tickets" | "windows";
  /** How long a process must be gone until what it held is given back; null: its leases alone count. */
  readonly graceMs: number | null;
  /** The store's code as one process has it, with whatever it remembers. */
  openProcess(owner: string, isPresent: (owner: string) => boolean): Execute | Promise<Execute>;
  /** What is in the tables, read past the code under test. */
  observe(seen: JournalSeen): Observed | Promise<Observed>;
}

/** Up to which entry the journal of each account has been read. */
export type JournalSeen = ReadonlyMap<string, number>;

export interface Observed {
  readonly accounts: readonly ObservedAccount[];
  readonly reservations: readonly ObservedReservation[];
  /** Only those that were not seen yet, in order. */
  readonly entries: readonly ObservedEntry[];
  readonly tickets: readonly ObservedTicket[];
  readonly keys: readonly ObservedKey[];
  /** What was given out, in its order, and then what is in the outbox. */
  readonly events: readonly ObservedEvent[];
}
export interface ObservedKey {
  readonly id: string;
  readonly version: number;
  /** null: none. */
  readonly budget: ObservedBudget | null;
}
export interface ObservedBudget {
  readonly amount: bigint;
  readonly begin: number;
  readonly spent: bigint;
  readonly held: bigint;
}
export interface ObservedEvent {
  readonly account: string;
  /** null: it is of the account. */
  readonly key: string | null;
  /** Its type, and the figure that it tells. */
  readonly text: string;
  /** null: it was not given out yet. */
  readonly position: number | null;
}
export interface ObservedAccount {
  readonly id: string;
  readonly active: boolean;
  readonly balance: bigint;
  readonly held: bigint;
  readonly running: number;
  readonly entries: number;
  readonly version: number;
  /** What of the balance is left of grants. */
  readonly grantLeft: bigint;
  /** What its archived receipts were charged. */
  readonly archived: bigint;
}
export interface ObservedReservation {
  readonly id: string;
  readonly account: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly label: string | null;
  readonly allowance: number;
  readonly priceList: string | null;
  /** In one line. */
  readonly prices: string;
  readonly reserved: bigint;
  /** 0 while it is open. */
  readonly charged: bigint;
  readonly refunded: bigint;
  readonly leaseUntil: number;
  /** The begin of its period; null: its key had no budget. */
  readonly period: number | null;
  readonly cancelled: boolean;
}
export interface ObservedTicket {
  readonly key: string;
  readonly atMs: number;
}
export interface ObservedEntry {
  readonly account: string;
  readonly sequence: number;
  readonly kind: string;
  readonly balanceDelta: bigint;
  readonly heldDelta: bigint;
  readonly requestId: string | null;
  readonly reference: string | null;
  readonly receipt: string | null;
}

type Row = Readonly<Record<string, unknown>>;

/** A column of an account: what its archived receipts were charged. */
export function archivedColumn(schema: string): string {
  return `coalesce((select charged_nanos from ${schema}archive as kept where kept.account_id = account.id), 0) as archived`;
}

/** The tables' rows as plain figures, the same for every store. */
export function observedOf(rows: {
  readonly accounts: readonly Row[];
  readonly reservations: readonly Row[];
  readonly entries: readonly Row[];
  readonly tickets: readonly Row[];
  readonly keys: readonly Row[];
  readonly events: readonly Row[];
}): Observed {
  return {
    accounts: rows.accounts.map((row) => ({
      id: row["id"] as string,
      active: row["status"] === "active",
      balance: wholeOf(row["balance_nanos"]),
      held: wholeOf(row["held_nanos"]),
      running: Number(row["running"]),
      entries: Number(row["entries"]),
      version: Number(row["version"]),
      grantLeft: wholeOf(row["grant_left_nanos"]),
      archived: wholeOf(row["archived"]),
    })),
    reservations: rows.reservations.map((row) => ({
      id: row["request_id"] as string,
      account: row["account_id"] as string,
      state: row["state"] as string,
      outcome: row["outcome"] as string | null,
      label: row["label"] as string | null,
      allowance: Number(row["allowance"]),
      priceList: row["price_list"] as string | null,
      prices: textOf({
        input: wholeOf(row["input_nanos_per_million"]),
        cached:
          row["cached_input_nanos_per_million"] === null
            ? null
            : wholeOf(row["cached_input_nanos_per_million"]),
        output: wholeOf(row["output_nanos_per_million"]),
      }),
      reserved: wholeOf(row["reserved_nanos"]),
      charged: wholeOf(row["charged_nanos"] ?? 0n),
      refunded: wholeOf(row["refunded_nanos"]),
      leaseUntil: Number(row["lease_until_ms"]),
      period: row["budget_begin_ms"] === null ? null : Number(row["budget_begin_ms"]),
      cancelled: row["cancelled_by"] !== null,
    })),
    entries: rows.entries.map((row) => ({
      account: row["account_id"] as string,
      sequence: Number(row["sequence"]),
      kind: row["kind"] as string,
      balanceDelta: wholeOf(row["balance_delta_nanos"]),
      heldDelta: wholeOf(row["held_delta_nanos"]),
      requestId: row["request_id"] as string | null,
      reference: row["reference"] as string | null,
      receipt: row["receipt"] as string | null,
    })),
    tickets: rows.tickets.map((row) => ({
      key: row["key_id"] as string,
      atMs: Number(row["at_ms"]),
    })),
    keys: rows.keys.map((row) => ({
      id: row["id"] as string,
      version: Number(row["version"]),
      budget:
        row["budget_nanos"] === null
          ? null
          : {
              amount: wholeOf(row["budget_nanos"]),
              begin: Number(row["budget_begin_ms"]),
              spent: wholeOf(row["budget_spent_nanos"]),
              held: wholeOf(row["budget_held_nanos"]),
            },
    })),
    events: rows.events.map((row) => ({
      account: row["account_id"] as string,
      key: keyTypes.has(row["type"] as string) ? (row["key_id"] as string) : null,
      text: textOfEvent(row["type"] as string, row["facts_json"] as string),
      position: Number(row["waiting"]) === 0 ? Number(row["place"]) : null,
    })),
  };
}

const keyTypes: ReadonlySet<string> = new Set(["budget.reached", "key.expiring"]);

/** The figure by which one event of a type differs from the next. */
const figures: Readonly<Record<string, string>> = {
  "account.credited": "amount_nanos",
  "budget.reached": "percent",
  "key.expiring": "expires_at_ms",
};

function textOfEvent(type: string, factsJson: string): string {
  const figure = figures[type];
  if (figure === undefined) return type;
  const facts = JSON.parse(factsJson) as Readonly<Record<string, unknown>>;
  return `${type} ${String(facts[figure])}`;
}

/** Drivers give large integers as bigint or as text. */
function wholeOf(value: unknown): bigint {
  return BigInt(value as bigint | string);
}

/** The columns that a run looks at. */
export const columns = {
  account: "id, status, balance_nanos, held_nanos, running, entries, version, grant_left_nanos",
  reservation:
    "request_id, account_id, state, outcome, label, allowance, price_list, input_nanos_per_million, cached_input_nanos_per_million, output_nanos_per_million, reserved_nanos, charged_nanos, refunded_nanos, lease_until_ms, budget_begin_ms, cancelled_by",
  entry:
    "account_id, sequence, kind, balance_delta_nanos, held_delta_nanos, request_id, reference, receipt",
  ticket: "key_id, at_ms",
  key: "id, version, budget_nanos, budget_begin_ms, budget_spent_nanos, budget_held_nanos",
} as const;

/** What has happened, in the order in which it is given out; tables have the names that the store has for them. */
export function eventsSql(schema: "" | "tributary."): string {
  return `select 0 as waiting, position as place, type, account_id, key_id, facts_json from ${schema}event
    union all select 1, sequence, type, account_id, key_id, facts_json from ${schema}outbox order by 1, 2`;
}
