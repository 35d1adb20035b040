import { timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { leastCostNanos, type Prices } from "../../admission/price.ts";
import type { AccountId, KeyId } from "../records.ts";
import type { AuthorizeOrder, StoreOperations } from "../store-operations.ts";
import { disabledAccount, noCredit, revokedKey, unknownKey } from "../refusals.ts";
import { accountStateOf, type AccountState, chainEndOf, type ChainEnd } from "./accounts.ts";
import type { RateWindow } from "./rate-window.ts";
import { bigOf, bytesOf, textOf, type Row } from "../row.ts";
import { getRow } from "./get-row.ts";

/** Checks of keys and accounts, for both phases of a request. */
export interface KeyGate {
  readonly authorize: StoreOperations["authorize"];
  /** The second look, inside `admit`, and what the account has: what was revoked or disabled in between is refused. */
  ensureActive(accountId: AccountId, keyId: KeyId): AccountState & { readonly end: ChainEnd };
}

const noHash = new Uint8Array(32);

/** Prepares the statements once. Nothing is cached: a revocation made by any process holds from the next request on. */
export function openKeyGate(
  database: DatabaseSync,
  rateWindow: RateWindow,
  prices: Prices,
): KeyGate {
  const leastNanos = leastCostNanos(prices);
  const find = database.prepare(
    `select api_key.secret_hash, api_key.revoked_at_ms, account.status, account.balance_nanos, account.held_nanos
     from api_key join account on account.id = api_key.account_id
     where api_key.account_id = ? and api_key.id = ?`,
  );
  const findActive = database.prepare(
    `select api_key.revoked_at_ms, account.status, account.balance_nanos, account.held_nanos, account.running,
       account.entries, account.head as account_head
     from api_key join account on account.id = api_key.account_id
     where api_key.account_id = ? and api_key.id = ?`,
  );
  return {
    authorize(order, nowMs) {
      const row = ensureUsable(getRow(find, order.accountId, order.keyId), order);
      const { accountId, keyId } = order;
      const { rate, ticket } = rateWindow.take(keyId, order.ticketId, nowMs);
      // The balance with what is held: running requests give some of it back, and only `admit` knows what is needed.
      const balanceNanos = bigOf(row, "balance_nanos");
      if (order.needsCredit && balanceNanos < leastNanos)
        throw noCredit({ balanceNanos, heldNanos: bigOf(row, "held_nanos"), leastNanos, rate });
      return { accountId, keyId, ticket, rate };
    },
    ensureActive(accountId, keyId) {
      const row = getRow(findActive, accountId, keyId);
      if (row === null) throw unknownKey();
      ensureNotRevoked(row);
      return { ...accountStateOf(row), end: chainEndOf(row) };
    },
  };
}

function ensureUsable(row: Row | null, order: AuthorizeOrder): Row {
  // An unknown key is compared too, so that it takes as long as a wrong one.
  const equal = timingSafeEqual(
    row === null ? noHash : bytesOf(row, "secret_hash"),
    order.secretHash,
  );
  if (row === null || !equal) throw unknownKey();
  ensureNotRevoked(row);
  return row;
}

function ensureNotRevoked(row: Row): void {
  if (row["revoked_at_ms"] !== null) throw revokedKey();
  if (textOf(row, "status") !== "active") throw disabledAccount();
}
