import { timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { leastCostNanos, type Prices } from "../../admission/price.ts";
import type { Caller } from "../ledger.ts";
import { currentPrices, joinedPriceColumns, joinPrice } from "../price-list.ts";
import type { AuthorizeOrder, StoreOperations } from "../store-operations.ts";
import { disabledAccount, noCredit, revokedKey, unknownKey } from "../refusals.ts";
import { accountStateOf, type AccountState, chainEndOf, type ChainEnd } from "./accounts.ts";
import type { RateWindow } from "./rate-window.ts";
import { bigOf, bytesOf, textOf, textOrNullOf, type Row } from "../row.ts";
import { getRow } from "./get-row.ts";

/** Checks of keys and accounts, for both phases of a request. */
export interface KeyGate {
  readonly authorize: StoreOperations["authorize"];
  /** The second look, inside `admit`, and what the account has: what was revoked or disabled in between is refused. */
  ensureActive(caller: Caller, nowMs: number): ActiveAccount;
}

/** An account inside `admit`, with the prices of this moment. */
export interface ActiveAccount extends AccountState {
  readonly end: ChainEnd;
  /** null: the prices are those of the settings. */
  readonly priceList: string | null;
  readonly prices: Prices;
}

const noHash = new Uint8Array(32);

/** Prepares the statements once. Nothing is cached: a revocation made by any process holds from the next request on. */
export function openKeyGate(
  database: DatabaseSync,
  rateWindow: RateWindow,
  prices: Prices,
): KeyGate {
  const find = database.prepare(
    `select api_key.secret_hash, api_key.revoked_at_ms, account.status, account.balance_nanos, account.held_nanos,
       ${joinedPriceColumns}
     from api_key join account on account.id = api_key.account_id ${joinPrice("", "?3")}
     where api_key.account_id = ?1 and api_key.id = ?2`,
  );
  const findActive = database.prepare(
    `select api_key.revoked_at_ms, account.status, account.balance_nanos, account.held_nanos, account.running,
       account.entries, account.head as account_head, ${joinedPriceColumns}
     from api_key join account on account.id = api_key.account_id ${joinPrice("", "?3")}
     where api_key.account_id = ?1 and api_key.id = ?2`,
  );
  return {
    authorize(order, nowMs) {
      const row = ensureUsable(getRow(find, order.accountId, order.keyId, nowMs), order);
      const { accountId, keyId } = order;
      const { rate, ticket } = rateWindow.take(keyId, order.ticketId, nowMs);
      // The balance with what is held: running requests give some of it back, and only `admit` knows what is needed.
      const balanceNanos = bigOf(row, "balance_nanos");
      const leastNanos = leastCostNanos(currentPrices(row, prices));
      if (order.needsCredit && balanceNanos < leastNanos)
        throw noCredit({ balanceNanos, heldNanos: bigOf(row, "held_nanos"), leastNanos, rate });
      return { accountId, keyId, ticket, rate };
    },
    ensureActive({ accountId, keyId }, nowMs) {
      const row = getRow(findActive, accountId, keyId, nowMs);
      if (row === null) throw unknownKey();
      ensureNotRevoked(row);
      return {
        ...accountStateOf(row),
        end: chainEndOf(row),
        priceList: textOrNullOf(row, "listed_in"),
        prices: currentPrices(row, prices),
      };
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
