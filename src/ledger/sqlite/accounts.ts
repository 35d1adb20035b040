import type { DatabaseSync } from "node:sqlite";
import type { AccountId, CreditNanos, RequestId } from "../ledger.ts";
import { bigOf, numberOf, textOf } from "../row.ts";
import { getRow } from "./get-row.ts";

/** What an account has, inside a transaction. */
export interface AccountState {
  readonly status: "active" | "disabled";
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  readonly running: number;
}

/** One change of an account, and the journal entry that says why. */
export interface Movement {
  readonly kind: "credit" | "takeback" | "reserve" | "settle" | "expire";
  readonly balanceDeltaNanos: CreditNanos;
  readonly heldDeltaNanos: CreditNanos;
  readonly runningDelta: -1 | 0 | 1;
  readonly requestId: RequestId | null;
  readonly note: string | null;
}

/** The account rows and their journal; the only place that changes a balance. */
export interface Accounts {
  find(id: string): AccountState | null;
  move(id: AccountId, movement: Movement, nowMs: number): void;
}

/** Prepares the statements once. */
export function openAccounts(database: DatabaseSync): Accounts {
  const find = database.prepare(
    "select status, balance_nanos, held_nanos, running from account where id = ?",
  );
  // The new value is made from the row itself, never from what was read before, and the row's checks guard it.
  const change = database.prepare(
    `update account set balance_nanos = balance_nanos + ?, held_nanos = held_nanos + ?,
       running = running + ?, entries = entries + 1 where id = ? returning entries`,
  );
  const append = database.prepare(
    `insert into entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, request_id, note)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return {
    find(id) {
      const row = getRow(find, id);
      if (row === null) return null;
      return {
        status: textOf(row, "status") === "active" ? "active" : "disabled",
        balanceNanos: bigOf(row, "balance_nanos"),
        heldNanos: bigOf(row, "held_nanos"),
        running: numberOf(row, "running"),
      };
    },
    move(id, movement, nowMs) {
      const { balanceDeltaNanos, heldDeltaNanos, kind, note, requestId, runningDelta } = movement;
      const row = getRow(change, balanceDeltaNanos, heldDeltaNanos, runningDelta, id);
      if (row === null) throw new Error(`ledger: no account ${id} to move credit of`);
      append.run(
        id,
        bigOf(row, "entries"),
        nowMs,
        kind,
        balanceDeltaNanos,
        heldDeltaNanos,
        requestId,
        note,
      );
    },
  };
}
