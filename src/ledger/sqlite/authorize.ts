import { timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import {
  type LimitsInForce,
  limitsInForce,
  type ServiceLimits,
} from "../../admission/limits-in-force.ts";
import { budgetColumns } from "../budget.ts";
import { leastCostNanos, type Prices } from "../../admission/price.ts";
import type { Caller } from "../ledger.ts";
import { currentPrices, joinedPriceColumns, joinPrice } from "../price-list.ts";
import { keyLimitsOf, type KeyScope } from "../records.ts";
import { type AuthorizeOrder, neededScope, type StoreOperations } from "../store-operations.ts";
import {
  disabledAccount,
  expiredKey,
  keyWithout,
  noCredit,
  pausedKey,
  replacedKey,
  revokedKey,
  unknownKey,
} from "../refusals.ts";
import { accountStateOf, type AccountState, chainEndOf, type ChainEnd } from "./accounts.ts";
import type { RateWindow } from "./rate-window.ts";
import {
  bigOf,
  bytesOf,
  numberOf,
  numberOrNullOf,
  textOf,
  textOrNullOf,
  type Row,
} from "../row.ts";
import { getRow } from "./get-row.ts";

/** Checks of keys and accounts, for both phases of a request. */
export interface KeyGate {
  readonly authorize: StoreOperations["authorize"];
  readonly noteKeyUse: StoreOperations["noteKeyUse"];
  /** The second look, inside `admit`, and what the account has: what was revoked or disabled in between is refused. */
  ensureActive(caller: Caller, nowMs: number): ActiveAccount;
}

/** An account inside `admit`, with the prices of this moment. */
export interface ActiveAccount extends AccountState {
  readonly end: ChainEnd;
  readonly limits: LimitsInForce;
  /** null: the prices are those of the settings. */
  readonly priceList: string | null;
  readonly prices: Prices;
  /** The name of the key, and its columns of `budgetOf`. */
  readonly key: Row;
  readonly grantIsDue: boolean;
}

const noHash = new Uint8Array(32);

// What `limitsOf` and `ensureMay` read.
const gateColumns = `api_key.revoked_at_ms, api_key.expires_at_ms, api_key.status as key_status, api_key.scopes,
  account.status, account.concurrent_requests, account.requests_per_minute as account_requests_per_minute,
  account.output_tokens_max as account_output_tokens_max, api_key.requests_per_minute, api_key.output_tokens_max`;

/** Prepares the statements once. Nothing is cached: a revocation made by any process holds from the next request on. */
export function openKeyGate(
  database: DatabaseSync,
  rateWindow: RateWindow,
  rules: ServiceLimits & { readonly prices: Prices },
): KeyGate {
  const { prices } = rules;
  const find = database.prepare(
    `select api_key.secret_hash, api_key.previous_hash, api_key.previous_until_ms, ${gateColumns},
       account.balance_nanos, account.held_nanos, account.grant_next_ms,
       ${joinedPriceColumns}
     from api_key join account on account.id = api_key.account_id ${joinPrice("", "?3")}
     where api_key.account_id = ?1 and api_key.id = ?2`,
  );
  const findActive = database.prepare(
    `select ${gateColumns}, api_key.name, ${budgetColumns}, account.balance_nanos, account.held_nanos,
       account.running, account.entries, account.head as account_head, account.grant_next_ms, ${joinedPriceColumns}
     from api_key join account on account.id = api_key.account_id ${joinPrice("", "?3")}
     where api_key.account_id = ?1 and api_key.id = ?2`,
  );
  const use = database.prepare(
    `update api_key set last_used_at_ms = ?3
     where account_id = ?1 and id = ?2 and coalesce(last_used_at_ms, 0) < ?3`,
  );
  return {
    authorize(order, nowMs) {
      const found = getRow(find, order.accountId, order.keyId, nowMs);
      const row = ensureUsable(found, order, nowMs);
      const { accountId, keyId, ticketId } = order;
      const { concurrentRequests, requestsPerMinute } = limitsOf(row, rules);
      const { rate, ticket } = rateWindow.take({
        keyId,
        ticketId,
        nowMs,
        limit: requestsPerMinute,
      });
      // The balance with what is held: running requests give some of it back, and only `admit` knows what is needed.
      const balanceNanos = bigOf(row, "balance_nanos");
      const leastNanos = leastCostNanos(currentPrices(row, prices));
      if (order.needsCredit && balanceNanos < leastNanos && !isDue(row, nowMs))
        throw noCredit({ balanceNanos, heldNanos: bigOf(row, "held_nanos"), leastNanos, rate });
      return { accountId, keyId, ticket, rate, concurrentRequests };
    },
    noteKeyUse({ accountId, keyId, usedAtMs }) {
      use.run(accountId, keyId, usedAtMs);
      return null;
    },
    ensureActive({ accountId, keyId }, nowMs) {
      const row = getRow(findActive, accountId, keyId, nowMs);
      if (row === null) throw unknownKey();
      ensureMay(row, "generate", nowMs);
      return {
        ...accountStateOf(row),
        limits: limitsOf(row, rules),
        end: chainEndOf(row),
        priceList: textOrNullOf(row, "listed_in"),
        prices: currentPrices(row, prices),
        key: row,
        grantIsDue: isDue(row, nowMs),
      };
    },
  };
}

function isDue(row: Row, nowMs: number): boolean {
  return (numberOrNullOf(row, "grant_next_ms") ?? Infinity) <= nowMs;
}

function ensureUsable(row: Row | null, order: AuthorizeOrder, nowMs: number): Row {
  // What is not there is compared too, so that an unknown key takes as long as a wrong one.
  const secret = hashOf(row, "secret_hash");
  const previous = hashOf(row, "previous_hash");
  const isSecret = timingSafeEqual(secret ?? noHash, order.secretHash) && secret !== null;
  const isPrevious = timingSafeEqual(previous ?? noHash, order.secretHash) && previous !== null;
  if (row === null || !(isSecret || isPrevious)) throw unknownKey();
  if (!isSecret && numberOf(row, "previous_until_ms") <= nowMs) throw replacedKey();
  ensureMay(row, neededScope(order), nowMs);
  return row;
}

function hashOf(row: Row | null, column: string): Uint8Array | null {
  return row === null || row[column] === null ? null : bytesOf(row, column);
}

/** Throws unless the key may do now what needs this scope. */
function ensureMay(row: Row, scope: KeyScope | null, nowMs: number): void {
  if (row["revoked_at_ms"] !== null) throw revokedKey();
  const expiresAtMs = numberOrNullOf(row, "expires_at_ms");
  if (expiresAtMs !== null && expiresAtMs <= nowMs) throw expiredKey();
  if (textOf(row, "key_status") !== "active") throw pausedKey();
  if (textOf(row, "status") !== "active") throw disabledAccount();
  if (scope !== null && !textOf(row, "scopes").includes(scope)) throw keyWithout(scope);
}

function limitsOf(row: Row, service: ServiceLimits): LimitsInForce {
  const account = {
    concurrentRequests: numberOrNullOf(row, "concurrent_requests"),
    requestsPerMinute: numberOrNullOf(row, "account_requests_per_minute"),
    outputTokensMax: numberOrNullOf(row, "account_output_tokens_max"),
  };
  return limitsInForce(service, account, keyLimitsOf(row));
}
