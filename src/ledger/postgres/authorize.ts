import { randomBytes } from "node:crypto";
import { limits } from "../../limits.ts";
import type { Caller } from "../ledger.ts";
import type { AuthorizeOrder } from "../operations.ts";
import { disabledAccount, rateLimited, rateState, revokedKey, unknownKey } from "../refusals.ts";
import { numberOf, numberOrNullOf, textOf, type Row } from "../row.ts";
import type { Database } from "./database.ts";
import type { Clock, PostgresOperations } from "./operations.ts";

const authorize = {
  name: "authorize",
  text: "select verdict, live, newest, fits_at, now from tributary.authorize($1, $2, $3, $4, $5, $6, $7, $8)",
};

/** Nothing is cached: a revocation holds from the next request on, whichever replica made it. */
export function openAuthorize(
  database: Database,
  limit: number,
  clock: Clock,
): PostgresOperations["authorize"] {
  const nonce = randomBytes(16);
  return async (order) => {
    const { accountId, keyId, secretHash, ticketId } = order;
    const [row] = await database.query(
      authorize,
      accountId,
      keyId,
      Buffer.from(secretHash),
      nonce,
      ticketId,
      limit,
      limits.rateWindowMs,
      clock(),
    );
    if (row === undefined) throw new Error("ledger: no answer from authorize");
    return callerOf(row, order, limit);
  };
}

function callerOf(row: Row, order: AuthorizeOrder, limit: number): Caller {
  const verdict = textOf(row, "verdict");
  throwRefusal(verdict);
  const nowMs = numberOf(row, "now");
  const newest = numberOrNullOf(row, "newest");
  const resetMs = newest === null ? 0 : newest + limits.rateWindowMs - nowMs;
  const rate = rateState(limit, numberOf(row, "live"), resetMs);
  if (verdict === "rate") throw rateLimited(rate, numberOf(row, "fits_at") - nowMs);
  const { accountId, keyId, ticketId } = order;
  const ticket = ticketId === null ? null : `${String(nowMs)}.${ticketId}`;
  return { accountId, keyId, ticket, rate };
}

/** Of a key or an account, in either phase; anything else is none. */
export function throwRefusal(verdict: string): void {
  if (verdict === "unknown") throw unknownKey();
  if (verdict === "revoked") throw revokedKey();
  if (verdict === "disabled") throw disabledAccount();
}
