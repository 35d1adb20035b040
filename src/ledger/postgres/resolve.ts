import { limits } from "../../limits.ts";
import type { Settlement } from "../ledger.ts";
import { bigOf, idOf, numberOf, numberOrNullOf, textOf } from "../row.ts";
import { openBatches, type BatchOrder } from "./batches.ts";
import type { Clock, Database } from "./database.ts";
import type { PostgresOperations, StoreGroup } from "../store-operations.ts";
import type { Looked, PostgresPresence } from "./presence.ts";

const settle = {
  name: "settle",
  text: `select place, charged, applied
    from tributary.settle_each($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
};
// By request id alone: one statement renews what a replica runs, of many accounts, once in a third of a lease. It locks
// rows in the order in which settlements do.
const renew = {
  name: "renew",
  text: `with mine as (select account_id, request_id from tributary.reservation
      where request_id = any($1::text[]) and state = 'open' order by account_id, request_id for no key update)
    update tributary.reservation r set lease_until_ms = coalesce($3, tributary.now_ms()) + $2, lease_ms = $2
    from mine where r.account_id = mine.account_id and r.request_id = mine.request_id returning r.request_id`,
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
const look = {
  name: "look",
  text: "select dead, again_ms from tributary.look_round(null, null, $1, $2)",
};
const sweep = { name: "sweep", text: "select tributary.sweep_rate($1, $2, $3)" };

type Resolve = Pick<PostgresOperations, "settle" | "renew" | "expire" | "giveBackDead">;

interface ResolveParts {
  readonly busyMs: number;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly onGroup: ((group: StoreGroup) => void) | undefined;
  readonly presence: PostgresPresence | null;
}

/** How reservations end or are renewed. Each is resolved once: what resolves one wants it `open`, under the account's lock. */
export function openResolve(database: Database, parts: ResolveParts): Resolve {
  const { clock, leaseMs, presence } = parts;
  const giveBackDue = openGiveBack(database, parts);
  const batches = openBatches<Settlement & BatchOrder>(database, {
    statement: settle,
    busyMs: parts.busyMs,
    onGroup: parts.onGroup,
    values: (orders, lockMs) => [...valuesOf(orders), lockMs, clock()],
  });
  async function lookAsCommand(): Promise<Looked> {
    const [row] = await database.query(look, limits.ledgerReturnMs, clock());
    const againInMs = row === undefined ? null : numberOrNullOf(row, "again_ms");
    return { known: true, dead: row?.["dead"] === true, againInMs };
  }

  return {
    async settle(settlement) {
      const { requestId } = settlement;
      const row = await batches({ ...settlement, lockedAs: requestId, onlyOnce: requestId });
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
      const { againInMs, dead, known } = await (presence?.look() ?? lookAsCommand());
      return { count: dead ? await giveBackDue(true) : 0, known, againInMs };
    },
  };
}

function valuesOf(settlements: readonly Settlement[]): readonly unknown[] {
  return [
    settlements.map(({ accountId }) => accountId),
    settlements.map(({ requestId }) => requestId),
    settlements.map(({ outcome }) => outcome),
    settlements.map(({ usage }) => usage?.inputTokens ?? null),
    settlements.map(({ usage }) => usage?.cachedInputTokens ?? null),
    settlements.map(({ usage }) => usage?.outputTokens ?? null),
    settlements.map(({ usage }) => usage?.reasoningTokens ?? null),
    settlements.map(({ firstOutputMs }) => firstOutputMs),
    settlements.map(({ totalMs }) => totalMs),
  ];
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
