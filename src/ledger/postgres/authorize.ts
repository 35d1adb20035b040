import { randomBytes } from "node:crypto";
import type { ServiceLimits } from "../../admission/limits-in-force.ts";
import { leastCostNanos, type Prices } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import type { Caller } from "../ledger.ts";
import { type AuthorizeOrder, neededScope, type PostgresOperations } from "../store-operations.ts";
import { noCredit, rateLimited, rateState, throwRefusal } from "../refusals.ts";
import { bigOf, numberOf, numberOrNullOf, textOf, type Row } from "../row.ts";
import { openBatches, type BatchOrder } from "./batches.ts";
import type { Clock, Database } from "./database.ts";

const authorize = {
  name: "authorize",
  text: `select place, verdict, live, newest, fits_at, now, balance, held, needed, rate_limit, slots
    from tributary.authorize_each($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
};
const giveTicketBack = {
  name: "give-ticket-back",
  text: `select tributary.give_ticket_back($1, $2, $3, $4)
    from (select set_config('synchronous_commit', 'off', true)) as settings`,
};

const noteKeyUse = {
  name: "note-key-use",
  text: `update tributary.api_key set last_used_at_ms = $3
    from (select set_config('synchronous_commit', 'off', true)) as settings
    where account_id = $1 and id = $2 and coalesce(last_used_at_ms, 0) < $3`,
};

interface AuthorizeRules extends ServiceLimits {
  readonly prices: Prices;
  readonly busyMs: number;
}

/** Nothing is cached: a revocation made by any replica holds from the next request on. */
export function openAuthorize(
  database: Database,
  rules: AuthorizeRules,
  clock: Clock,
): Pick<PostgresOperations, "authorize" | "giveTicketBack" | "noteKeyUse"> {
  const nonce = randomBytes(16);
  const { busyMs, requestsPerMinute: limit } = rules;
  const leastNanos = leastCostNanos(rules.prices);
  const needed = leastNanos === 0n ? -1n : leastNanos;
  const batches = openBatches<AuthorizeOrder & BatchOrder>(database, {
    statement: authorize,
    busyMs,
    values: (orders, lockMs) => [
      orders.map((order) => order.accountId),
      orders.map((order) => order.keyId),
      orders.map((order) => Buffer.from(order.secretHash)),
      nonce,
      orders.map((order) => order.ticketId),
      limit,
      limits.rateWindowMs,
      orders.map((order) => (order.needsCredit ? needed : 0n)),
      lockMs,
      clock(),
    ],
  });
  const ask: PostgresOperations["authorize"] = async (order) => {
    const row = await batches({ ...order, lockedAs: order.keyId, onlyOnce: null });
    return callerOf(row, order, rules.concurrencyPerAccount);
  };
  return {
    authorize: ask,
    async noteKeyUse({ accountId, keyId, usedAtMs }) {
      await database.query(noteKeyUse, accountId, keyId, usedAtMs);
      return null;
    },
    async giveTicketBack({ accountId, keyId, ticket }) {
      const dot = ticket?.indexOf(".") ?? 0;
      if (ticket !== null)
        await database.query(
          giveTicketBack,
          accountId,
          keyId,
          ticket.slice(0, dot),
          ticket.slice(dot + 1),
        );
      return null;
    },
  };
}

function callerOf(row: Row, order: AuthorizeOrder, slots: number): Caller {
  const verdict = textOf(row, "verdict");
  throwRefusal(verdict, neededScope(order));
  const nowMs = numberOf(row, "now");
  const newest = numberOrNullOf(row, "newest");
  const resetMs = newest === null ? 0 : newest + limits.rateWindowMs - nowMs;
  const rate = rateState(numberOf(row, "rate_limit"), numberOf(row, "live"), resetMs);
  if (verdict === "rate") throw rateLimited(rate, numberOf(row, "fits_at") - nowMs);
  if (verdict === "credit") {
    const heldNanos = bigOf(row, "held");
    const leastNanos = bigOf(row, "needed");
    throw noCredit({ balanceNanos: bigOf(row, "balance"), heldNanos, leastNanos, rate });
  }
  const { accountId, keyId, ticketId } = order;
  const ticket = ticketId === null ? null : `${String(nowMs)}.${ticketId}`;
  const concurrentRequests = numberOrNullOf(row, "slots") ?? slots;
  return { accountId, keyId, ticket, rate, concurrentRequests };
}
