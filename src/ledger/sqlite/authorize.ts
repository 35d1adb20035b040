import { timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { Failure } from "../../failure.ts";
import type { AccountId, KeyId } from "../ledger.ts";
import type { AuthorizeOrder, StoreOperations } from "./operations.ts";
import type { RateWindow } from "./rate-window.ts";
import { bytesOf, getRow, textOf, type Row } from "./row.ts";

/** Checks of keys and accounts, for both phases of a request. */
export interface KeyGate {
  readonly authorize: StoreOperations["authorize"];
  /** The second look, inside `admit`: what was revoked or disabled in between is refused there. */
  ensureActive(accountId: AccountId, keyId: KeyId): void;
}

const noHash = new Uint8Array(32);

/** Prepares the statements once. Nothing is cached: a revocation holds from the next request on, whoever made it. */
export function openKeyGate(database: DatabaseSync, rateWindow: RateWindow): KeyGate {
  const find = database.prepare(
    `select api_key.secret_hash, api_key.revoked_at_ms, account.status
     from api_key join account on account.id = api_key.account_id
     where api_key.account_id = ? and api_key.id = ?`,
  );
  return {
    authorize(order, nowMs) {
      ensureUsable(getRow(find, order.accountId, order.keyId), order);
      const { accountId, keyId } = order;
      const { rate, ticket } = rateWindow.take(keyId, order.ticketId, nowMs);
      return { accountId, keyId, ticket, rate };
    },
    ensureActive(accountId, keyId) {
      const row = getRow(find, accountId, keyId);
      if (row === null) throw unknownKey();
      ensureNotRevoked(row);
    },
  };
}

function ensureUsable(row: Row | null, order: AuthorizeOrder): void {
  // An unknown key is compared too, so that it takes as long as a wrong one.
  const equal = timingSafeEqual(
    row === null ? noHash : bytesOf(row, "secret_hash"),
    order.secretHash,
  );
  if (row === null || !equal) throw unknownKey();
  ensureNotRevoked(row);
}

function ensureNotRevoked(row: Row): void {
  if (row["revoked_at_ms"] !== null)
    throw new Failure(
      "authentication",
      "This API key has been revoked. Ask the operator of this service for another one.",
    );
  if (textOf(row, "status") !== "active")
    throw new Failure(
      "account_disabled",
      "The account of this API key is disabled. Ask the operator of this service to enable it.",
    );
}

/** What a missing, malformed, unknown or wrong key gets: one text, so that it tells nothing about which it was. */
export function unknownKey(): Failure {
  return new Failure(
    "authentication",
    "The API key is missing or not valid. Send it whole, as it was printed when it was made (trib_...), as `Authorization: Bearer KEY` or `x-api-key: KEY`.",
  );
}
