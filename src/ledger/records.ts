import { bigOf, idOf, numberOf, numberOrNullOf, type Row, textOf } from "./row.ts";

/** Credit in integers of 1e-9 credit. */
export type CreditNanos = bigint;
/** Public id of an account: `acct_` and letters and digits. */
export type AccountId = `acct_${string}`;
/** Public id of a key: `key_` and letters and digits. */
export type KeyId = `key_${string}`;
/** Id of a request, the same in headers, logs, ledger and error bodies. */
export type RequestId = `req_${string}`;

/** Accounts as operators see them. Amounts in nanos. */
export interface Account {
  readonly id: AccountId;
  readonly name: string;
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  readonly status: "active" | "disabled";
  readonly createdAtMs: number;
}

/** A key without its secret. */
export interface KeyRecord {
  readonly id: KeyId;
  readonly accountId: AccountId;
  readonly name: string;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
}

/** A key that seals reasoning. */
export interface SealKeyRecord {
  readonly id: string;
  readonly secret: Uint8Array;
  /** Since it was made, by the store's clock. */
  readonly ageMs: number;
}

/** What was made because the ledger was empty. `secret` is the whole key, shown once. */
export interface FirstAccount {
  readonly account: Account;
  readonly key: KeyRecord;
  readonly secret: string;
}

/** The columns that `accountOf` reads. */
export const accountColumns = "id, name, balance_nanos, held_nanos, status, created_at_ms";

/** An account, from columns of its names. */
export function accountOf(row: Row): Account {
  return {
    id: idOf(row, "id", "acct_"),
    name: textOf(row, "name"),
    balanceNanos: bigOf(row, "balance_nanos"),
    heldNanos: bigOf(row, "held_nanos"),
    status: textOf(row, "status") === "active" ? "active" : "disabled",
    createdAtMs: numberOf(row, "created_at_ms"),
  };
}

/** The columns that `keyOf` reads. */
export const keyColumns = "id, account_id, name, created_at_ms, revoked_at_ms";

/** A key, from columns of its names. */
export function keyOf(row: Row): KeyRecord {
  return {
    id: idOf(row, "id", "key_"),
    accountId: idOf(row, "account_id", "acct_"),
    name: textOf(row, "name"),
    createdAtMs: numberOf(row, "created_at_ms"),
    revokedAtMs: numberOrNullOf(row, "revoked_at_ms"),
  };
}
