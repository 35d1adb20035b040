import type { StoreAnswer, StoreCall } from "../../src/ledger/operations.ts";

/** Calls of one replica, done together at one moment; each in a place of its own, none spoils another. */
export type Execute = (
  calls: readonly StoreCall[],
) => readonly StoreAnswer[] | Promise<readonly StoreAnswer[]>;

/** One ledger under many replicas, as a run needs it. */
export interface SimulatedStore {
  /** The store's code as one process has it, with whatever it remembers. */
  openProcess(): Execute | Promise<Execute>;
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
  /** Tickets of all keys, by key. */
  readonly tickets: ReadonlyMap<string, number>;
}
export interface ObservedAccount {
  readonly id: string;
  readonly active: boolean;
  readonly balance: bigint;
  readonly held: bigint;
  readonly running: number;
  readonly entries: number;
}
export interface ObservedReservation {
  readonly id: string;
  readonly account: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly allowance: number;
  readonly reserved: bigint;
  /** 0 while it is open. */
  readonly charged: bigint;
  readonly leaseUntil: number;
}
export interface ObservedEntry {
  readonly account: string;
  readonly sequence: number;
  readonly kind: string;
  readonly balanceDelta: bigint;
  readonly heldDelta: bigint;
  readonly requestId: string | null;
}

type Row = Readonly<Record<string, unknown>>;

/** The tables' rows as plain figures, the same for every store. */
export function observedOf(rows: {
  readonly accounts: readonly Row[];
  readonly reservations: readonly Row[];
  readonly entries: readonly Row[];
  readonly tickets: readonly Row[];
}): Observed {
  return {
    accounts: rows.accounts.map((row) => ({
      id: String(row["id"]),
      active: row["status"] === "active",
      balance: BigInt(row["balance_nanos"] as bigint),
      held: BigInt(row["held_nanos"] as bigint),
      running: Number(row["running"]),
      entries: Number(row["entries"]),
    })),
    reservations: rows.reservations.map((row) => ({
      id: String(row["request_id"]),
      account: String(row["account_id"]),
      state: String(row["state"]),
      outcome: row["outcome"] === null ? null : String(row["outcome"]),
      allowance: Number(row["allowance"]),
      reserved: BigInt(row["reserved_nanos"] as bigint),
      charged: BigInt((row["charged_nanos"] ?? 0n) as bigint),
      leaseUntil: Number(row["lease_until_ms"]),
    })),
    entries: rows.entries.map((row) => ({
      account: String(row["account_id"]),
      sequence: Number(row["sequence"]),
      kind: String(row["kind"]),
      balanceDelta: BigInt(row["balance_delta_nanos"] as bigint),
      heldDelta: BigInt(row["held_delta_nanos"] as bigint),
      requestId: row["request_id"] === null ? null : String(row["request_id"]),
    })),
    tickets: new Map(rows.tickets.map((row) => [String(row["key_id"]), Number(row["count"])])),
  };
}

/** The columns that a run looks at. */
export const columns = {
  account: "id, status, balance_nanos, held_nanos, running, entries",
  reservation:
    "request_id, account_id, state, outcome, allowance, reserved_nanos, charged_nanos, lease_until_ms",
  entry: "account_id, sequence, kind, balance_delta_nanos, held_delta_nanos, request_id",
} as const;
