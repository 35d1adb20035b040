import { limits } from "../../limits.ts";
import { bigOf, idOf, numberOf, textOf } from "../row.ts";
import type { Clock, Database } from "./database.ts";
import type { PostgresOperations } from "../store-operations.ts";
import type { PostgresPresence } from "./presence.ts";

const settle = {
  name: "settle",
  text: "select charged, applied from tributary.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
};
// By request id alone: one statement renews what a replica runs, of many accounts, once in a third of a lease.
const renew = {
  name: "renew",
  text: `update tributary.reservation set lease_until_ms = coalesce($3, tributary.now_ms()) + $2, lease_ms = $2
    where request_id = any($1::text[]) and state = 'open' returning request_id`,
};
const due = {
  name: "due",
  text: `select distinct account_id from tributary.reservation r, coalesce($4, tributary.now_ms()) as now
    where state = 'open' and tributary.is_due(r.lease_until_ms, r.lease_ms, r.owner, $1, $2, $3, now) limit $5`,
};
const giveBack = {
  name: "give-back",
  text: "select tributary.give_back($1, $2, $3, $4, $5)::bigint as count",
};
// For a command, which does not say that it lives.
const look = { name: "look", text: "select known, dead from tributary.look(null, null, $1, $2)" };
const sweep = { name: "sweep", text: "select tributary.sweep_rate($1, $2, $3)" };

type Resolve = Pick<PostgresOperations, "settle" | "renew" | "expire" | "giveBackDead">;

interface ResolveParts {
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly presence: PostgresPresence | null;
}

/** How reservations end or are renewed. Each is resolved once: what resolves one wants it `open`, under the account's lock. */
export function openResolve(database: Database, parts: ResolveParts): Resolve {
  const { clock, leaseMs, presence } = parts;
  const giveBackDue = openGiveBack(database, parts);
  return {
    async settle(settlement) {
      const { usage } = settlement;
      const [row] = await database.query(
        settle,
        settlement.accountId,
        settlement.requestId,
        settlement.outcome,
        usage?.inputTokens ?? null,
        usage?.cachedInputTokens ?? null,
        usage?.outputTokens ?? null,
        usage?.reasoningTokens ?? null,
        settlement.firstOutputMs,
        settlement.totalMs,
        clock(),
      );
      if (row === undefined) throw new Error("ledger: no answer from settle");
      return { chargedNanos: bigOf(row, "charged"), applied: row["applied"] === true };
    },
    async renew(requestIds) {
      if (requestIds.length === 0) return [];
      const rows = await database.query(renew, requestIds, leaseMs, clock());
      const ours = new Set(rows.map((row) => textOf(row, "request_id")));
      return requestIds.filter((requestId) => ours.has(requestId));
    },
    async expire() {
      await database.query(sweep, limits.rateWindowMs, limits.ledgerGroupMax, clock());
      return giveBackDue(false);
    },
    async giveBackDead() {
      if (presence === null) {
        const [row] = await database.query(look, limits.ledgerReturnMs, clock());
        return { count: row?.["dead"] === true ? await giveBackDue(true) : 0, known: true };
      }
      const { dead, known } = await presence.look();
      return { count: dead ? await giveBackDue(true) : 0, known };
    },
  };
}

/** Gives back what dead processes held (`dead`), or reservations whose lease has ended. */
function openGiveBack(
  database: Database,
  { clock, leaseMs }: ResolveParts,
): (dead: boolean) => Promise<number> {
  return async (dead) => {
    const rules = [dead, limits.ledgerReturnMs, leaseMs, clock()];
    const accounts = await database.query(due, ...rules, limits.ledgerGroupMax);
    let total = 0;
    let failed: { readonly error: unknown } | null = null;
    // One transaction for each account: an account whose lock cannot be had does not keep the others waiting.
    for (const account of accounts) {
      const id = idOf(account, "account_id", "acct_");
      try {
        const [row] = await database.query(giveBack, id, ...rules);
        if (row !== undefined) total += numberOf(row, "count");
      } catch (error) {
        failed ??= { error };
      }
    }
    if (failed !== null) throw failed.error;
    return total;
  };
}
