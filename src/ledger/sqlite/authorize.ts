import { timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { LimitsInForce, ServiceLimits } from "../../admission/limits-in-force.ts";
import { budgetColumns } from "../budget.ts";
import { dearestLeastNanos, leastCostNanos, type Prices } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import type { Caller, RateState } from "../ledger.ts";
import { currentPrices, joinedPriceColumns, joinPrice } from "../price-list.ts";
import { type AuthorizeOrder, neededScope, type StoreOperations } from "../store-operations.ts";
import { noCredit, throwRefusal, unknownKey } from "../refusals.ts";
import { accountStateOf, type AccountState, chainEndOf, type ChainEnd } from "./accounts.ts";
import type { RateWindow } from "./rate-window.ts";
import { bigOf, bytesOf, numberOf, numberOrNullOf, textOrNullOf, type Row } from "../row.ts";
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
  readonly limits: Pick<LimitsInForce, "concurrentRequests" | "outputTokensMax">;
  /** null: the prices are those of the settings. */
  readonly priceList: string | null;
  readonly prices: Prices;
  /** The name of the key, and its columns of `budgetOf`. */
  readonly key: Row;
  readonly grantIsDue: boolean;
}

const noHash = new Uint8Array(32);

// Each column that is read costs a request more than what is decided in the statement. The same on PostgreSQL:
// `key_refusal` and `authorize` of `postgres/authorize.sql.ts`, and the limits in `admission/limits-in-force.ts`.
function keyRefusal(now: string, scope: string): string {
  return `case when api_key.revoked_at_ms is not null then 'revoked' when api_key.expires_at_ms <= ${now} then 'expired'
    when api_key.status <> 'active' then 'paused' when account.status <> 'active' then 'disabled'
    when instr(api_key.scopes, ${scope}) = 0 then 'scope' end as refusal`;
}

const keyOfAccount = "api_key join account on account.id = api_key.account_id";

/** Prepares the statements once. Nothing is cached: a revocation made by any process holds from the next request on. */
export function openKeyGate(
  database: DatabaseSync,
  rateWindow: RateWindow,
  rules: ServiceLimits & { readonly prices: Prices },
): KeyGate {
  const { concurrencyPerAccount } = rules;
  // Numbers would be bound as floating point, and come back so.
  const requestsPerMinute = BigInt(rules.requestsPerMinute);
  const outputTokensMax = BigInt(limits.outputAllowanceMax);
  const find = database.prepare(
    `select api_key.secret_hash, api_key.previous_hash, api_key.previous_until_ms, ${keyRefusal("?3", "?4")},
       account.concurrent_requests, account.balance_nanos,
       min(coalesce(account.requests_per_minute, ?5),
         coalesce(api_key.requests_per_minute, account.requests_per_minute, ?5)) as rate_limit
     from ${keyOfAccount} where api_key.account_id = ?1 and api_key.id = ?2`,
  );
  const findActive = database.prepare(
    `select ${keyRefusal("?3", "'generate'")}, api_key.name, ${budgetColumns}, account.concurrent_requests,
       min(?4, coalesce(account.output_tokens_max, ?4), coalesce(api_key.output_tokens_max, ?4)) as output_tokens_max,
       account.balance_nanos, account.held_nanos, account.running, account.entries, account.head as account_head,
       account.grant_next_ms <= ?3 as grant_is_due, ${joinedPriceColumns}
     from ${keyOfAccount} ${joinPrice("", "?3")} where api_key.account_id = ?1 and api_key.id = ?2`,
  );
  const ensurePayable = openEnsurePayable(database, rules.prices);
  const use = database.prepare(
    `update api_key set last_used_at_ms = ?3
     where account_id = ?1 and id = ?2 and coalesce(last_used_at_ms, 0) < ?3`,
  );
  return {
    authorize(order, nowMs) {
      const { accountId, keyId, ticketId } = order;
      const scope = neededScope(order);
      const found = getRow(find, accountId, keyId, nowMs, scope, requestsPerMinute);
      const row = ensureUsable(found, order, nowMs);
      const limit = numberOf(row, "rate_limit");
      const { rate, ticket } = rateWindow.take({ keyId, ticketId, nowMs, limit });
      // Most balances pay for the smallest request whatever a price may be, and then no price is looked up.
      if (order.needsCredit && bigOf(row, "balance_nanos") < dearestLeastNanos)
        ensurePayable(accountId, rate, nowMs);
      const concurrentRequests = slotsOf(row) ?? concurrencyPerAccount;
      return { accountId, keyId, ticket, rate, concurrentRequests };
    },
    noteKeyUse({ accountId, keyId, usedAtMs }) {
      use.run(accountId, keyId, usedAtMs);
      return null;
    },
    ensureActive({ accountId, keyId }, nowMs) {
      const row = getRow(findActive, accountId, keyId, nowMs, outputTokensMax);
      if (row === null) throw unknownKey();
      throwRefusal(textOrNullOf(row, "refusal") ?? "", "generate");
      return {
        ...accountStateOf(row),
        limits: {
          concurrentRequests: slotsOf(row) ?? concurrencyPerAccount,
          outputTokensMax: numberOf(row, "output_tokens_max"),
        },
        end: chainEndOf(row),
        priceList: textOrNullOf(row, "listed_in"),
        prices: currentPrices(row, rules.prices),
        key: row,
        grantIsDue: row["grant_is_due"] === 1n,
      };
    },
  };
}

function slotsOf(row: Row): number | null {
  return numberOrNullOf(row, "concurrent_requests");
}

/** Throws unless the balance pays for the smallest request now, or a grant is due, which the admission pays. */
function openEnsurePayable(
  database: DatabaseSync,
  settings: Prices,
): (accountId: string, rate: RateState, nowMs: number) => void {
  const find = database.prepare(
    `select account.balance_nanos, account.held_nanos, account.grant_next_ms <= ?2 as grant_is_due, ${joinedPriceColumns}
     from account ${joinPrice("", "?2")} where account.id = ?1`,
  );
  return (accountId, rate, nowMs) => {
    const row = getRow(find, accountId, nowMs);
    if (row === null || row["grant_is_due"] === 1n) return;
    // The balance with what is held: running requests give some of it back, and only `admit` knows what is needed.
    const balanceNanos = bigOf(row, "balance_nanos");
    const leastNanos = leastCostNanos(currentPrices(row, settings));
    if (balanceNanos < leastNanos)
      throw noCredit({ balanceNanos, heldNanos: bigOf(row, "held_nanos"), leastNanos, rate });
  };
}

function ensureUsable(row: Row | null, order: AuthorizeOrder, nowMs: number): Row {
  // What is not there is compared too, so that an unknown key takes as long as a wrong one.
  const secret = hashOf(row, "secret_hash");
  const previous = hashOf(row, "previous_hash");
  const isSecret = timingSafeEqual(secret ?? noHash, order.secretHash) && secret !== null;
  const isPrevious = timingSafeEqual(previous ?? noHash, order.secretHash) && previous !== null;
  if (row === null || !(isSecret || isPrevious)) throw unknownKey();
  if (!isSecret && numberOf(row, "previous_until_ms") <= nowMs) throwRefusal("replaced", null);
  throwRefusal(textOrNullOf(row, "refusal") ?? "", neededScope(order));
  return row;
}

function hashOf(row: Row | null, column: string): Uint8Array | null {
  return row === null || row[column] === null ? null : bytesOf(row, column);
}
