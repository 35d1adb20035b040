import type { AccountLimits, KeyLimits } from "../admission/limits-in-force.ts";
import { grantColumns, grantOf, type GrantState } from "./grant.ts";
import { formatHead } from "./journal.ts";
import { budgetColumns, budgetOf, type BudgetState } from "./budget.ts";
import {
  bigOf,
  bytesOf,
  idOf,
  numberOf,
  numberOrNullOf,
  type Row,
  textOf,
  textOrNullOf,
} from "./row.ts";
import type { AccountId, CreditNanos, KeyId } from "./scalars.ts";

/** Accounts as operators see them. Amounts in nanos. */
export interface Account {
  readonly id: AccountId;
  readonly name: string;
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  readonly running: number;
  readonly status: "active" | "disabled";
  readonly limits: AccountLimits;
  /** null: `default`. */
  readonly priceList: string | null;
  /** Below it the balance is low, which is an event; null: nowhere. */
  readonly lowBalanceNanos: CreditNanos | null;
  /** What it is granted in each period; null: nothing. */
  readonly grant: GrantState | null;
  /** What of the balance is left of grants. */
  readonly grantLeftNanos: CreditNanos;
  readonly createdAtMs: number;
  /** The name that another system has for it; no two accounts have the same. */
  readonly externalId: string | null;
  readonly metadata: Metadata;
  /** Goes up with each change of what operators set. */
  readonly version: number;
  /** Of its journal, as `formatHead` has it; null while it has no entry. */
  readonly head: string | null;
}

/** What an operator's own systems note of an account. */
export type Metadata = Readonly<Record<string, string>>;

/** What a key may be used for: to spend, and to look at its account. */
export const keyScopes = ["generate", "read"] as const;

/** One of them. */
export type KeyScope = (typeof keyScopes)[number];

/** A key without its secret. */
export interface KeyRecord {
  readonly id: KeyId;
  readonly accountId: AccountId;
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly status: "active" | "paused";
  readonly expiresAtMs: number | null;
  readonly limits: KeyLimits;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
  /** The minute in which it was last used. */
  readonly lastUsedAtMs: number | null;
  /** Until when the secret before the last rotation is good; null: it was never rotated. */
  readonly previousUntilMs: number | null;
  /** null: the key may spend what its account has. */
  readonly budget: BudgetState | null;
  /** Goes up with each change of what operators set. */
  readonly version: number;
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
export const accountColumns = `id, name, balance_nanos, held_nanos, status, concurrent_requests, requests_per_minute,
  output_tokens_max, price_list, low_balance_nanos, ${grantColumns}, grant_left_nanos, created_at_ms,
  running, external_id, metadata_json, version, entries, head`;

/** An account, from columns of its names. */
export function accountOf(row: Row): Account {
  const id = idOf(row, "id", "acct_");
  const sequence = numberOf(row, "entries");
  return {
    id,
    name: textOf(row, "name"),
    balanceNanos: bigOf(row, "balance_nanos"),
    heldNanos: bigOf(row, "held_nanos"),
    status: textOf(row, "status") === "active" ? "active" : "disabled",
    limits: {
      concurrentRequests: numberOrNullOf(row, "concurrent_requests"),
      ...keyLimitsOf(row),
    },
    priceList: textOrNullOf(row, "price_list"),
    lowBalanceNanos: row["low_balance_nanos"] === null ? null : bigOf(row, "low_balance_nanos"),
    grant: grantOf(row),
    grantLeftNanos: bigOf(row, "grant_left_nanos"),
    createdAtMs: numberOf(row, "created_at_ms"),
    running: numberOf(row, "running"),
    externalId: textOrNullOf(row, "external_id"),
    // Only `metadataOf` of operator-input.ts lets values into the column.
    metadata: JSON.parse(textOf(row, "metadata_json")) as Metadata,
    version: numberOf(row, "version"),
    head:
      sequence === 0 ? null : formatHead({ accountId: id, sequence, hash: bytesOf(row, "head") }),
  };
}

/** The columns that `keyOf` reads. */
export const keyColumns = `id, account_id, name, scopes, status, expires_at_ms, requests_per_minute, output_tokens_max,
  created_at_ms, revoked_at_ms, last_used_at_ms, previous_until_ms, ${budgetColumns}, version`;

/** A key at a time, from columns of its names. */
export function keyOf(row: Row, nowMs: number): KeyRecord {
  return {
    id: idOf(row, "id", "key_"),
    accountId: idOf(row, "account_id", "acct_"),
    name: textOf(row, "name"),
    scopes: scopesOf(textOf(row, "scopes")),
    status: textOf(row, "status") === "active" ? "active" : "paused",
    expiresAtMs: numberOrNullOf(row, "expires_at_ms"),
    limits: keyLimitsOf(row),
    createdAtMs: numberOf(row, "created_at_ms"),
    version: numberOf(row, "version"),
    revokedAtMs: numberOrNullOf(row, "revoked_at_ms"),
    lastUsedAtMs: numberOrNullOf(row, "last_used_at_ms"),
    previousUntilMs: numberOrNullOf(row, "previous_until_ms"),
    budget: budgetOf(row, nowMs),
  };
}

/** The limits of a key, from columns of their names. */
export function keyLimitsOf(row: Row): KeyLimits {
  return {
    requestsPerMinute: numberOrNullOf(row, "requests_per_minute"),
    outputTokensMax: numberOrNullOf(row, "output_tokens_max"),
  };
}

/** The scopes of a key, from its column. */
export function scopesOf(text: string): readonly KeyScope[] {
  return keyScopes.filter((scope) => text.split(" ").includes(scope));
}

/** What each secret of a key begins with; the rest of it is nowhere. */
export function keyPrefix({ accountId, id }: Pick<KeyRecord, "accountId" | "id">): string {
  return `trib_${accountId.slice("acct_".length)}_${id.slice("key_".length)}`;
}
