import type { DatabaseSync } from "node:sqlite";
import { chargeNanos } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import { type Accounts, chainEndOf } from "./accounts.ts";
import type { Budgets } from "./budgets.ts";
import type { StoreOperations } from "../store-operations.ts";
import type { RateWindow } from "./rate-window.ts";
import { pricesOf } from "../price-list.ts";
import { bigOf, idOf, numberOrNullOf, textOf, textOrNullOf, type Row } from "../row.ts";
import { getRow } from "./get-row.ts";

interface ResolveParts {
  readonly leaseMs: number;
  readonly accounts: Accounts;
  readonly budgets: Budgets;
  readonly rateWindow: RateWindow;
  /** Whether the process with this id lives. */
  readonly isPresent: (owner: string) => boolean;
}

type Resolve = Pick<StoreOperations, "settle" | "renew" | "expire" | "giveBackDead">;

/** How reservations end or are renewed. Each is resolved once: every statement that resolves one wants it `open`. */
export function openResolve(database: DatabaseSync, parts: ResolveParts): Resolve {
  return {
    settle: openSettle(database, parts),
    renew: openRenew(database, parts.leaseMs),
    ...openExpire(database, parts),
  };
}

function openSettle(
  database: DatabaseSync,
  { accounts, budgets }: Pick<ResolveParts, "accounts" | "budgets">,
): Resolve["settle"] {
  const find = database.prepare(
    `select account_id, key_id, budget_begin_ms, state, reserved_nanos, charged_nanos, input_nanos_per_million,
       cached_input_nanos_per_million, output_nanos_per_million, account.entries, account.head as account_head
     from reservation join account on account.id = account_id where request_id = ?`,
  );
  const close = database.prepare(
    `update reservation set state = 'settled', charged_nanos = ?, outcome = ?, input_tokens = ?,
       cached_input_tokens = ?, output_tokens = ?, reasoning_tokens = ?, resolved_at_ms = ?, first_output_ms = ?,
       total_ms = ?, resolved_sequence = ?, head = ?
     where request_id = ? and state = 'open'`,
  );
  return (settlement, nowMs) => {
    const { accountId, requestId, usage } = settlement;
    const row = getRow(find, requestId);
    // The admission of this request was never committed: nothing is held, nothing is owed.
    if (row === null) return { chargedNanos: 0n, applied: false };
    if (textOf(row, "account_id") !== accountId)
      throw new Error(`ledger: request ${requestId} belongs to another account`);
    if (textOf(row, "state") !== "open")
      return { chargedNanos: bigOf(row, "charged_nanos"), applied: false };
    const reservedNanos = bigOf(row, "reserved_nanos");
    const chargedNanos = usage === null ? 0n : chargeNanos(usage, pricesOf(row), reservedNanos);
    const written = accounts.move(
      accountId,
      {
        kind: "settle",
        balanceDeltaNanos: -chargedNanos,
        heldDeltaNanos: -reservedNanos,
        runningDelta: -1,
        actor: textOf(row, "key_id"),
        requestId,
        note: null,
        after: chainEndOf(row),
      },
      nowMs,
    );
    budgets.resolve(budgetedKeyOf(row), { held: reservedNanos, charged: chargedNanos });
    close.run(
      chargedNanos,
      settlement.outcome,
      usage?.inputTokens ?? null,
      usage?.cachedInputTokens ?? null,
      usage?.outputTokens ?? null,
      usage?.reasoningTokens ?? null,
      nowMs,
      settlement.firstOutputMs,
      settlement.totalMs,
      written.sequence,
      written.hash,
      requestId,
    );
    return { chargedNanos, applied: true };
  };
}

function openRenew(database: DatabaseSync, leaseMs: number): Resolve["renew"] {
  const prolong = database.prepare(
    "update reservation set lease_until_ms = ?, lease_ms = ? where request_id = ? and state = 'open'",
  );
  return (requestIds, nowMs) =>
    requestIds.filter(
      (requestId) => Number(prolong.run(nowMs + leaseMs, leaseMs, requestId).changes) === 1,
    );
}

function openExpire(
  database: DatabaseSync,
  parts: ResolveParts,
): Pick<Resolve, "expire" | "giveBackDead"> {
  const columns = "request_id, account_id, key_id, reserved_nanos, owner, budget_begin_ms";
  const due = database.prepare(
    `select ${columns} from reservation
     where state = 'open' and lease_until_ms <= ? order by lease_until_ms, request_id limit ?`,
  );
  // Leases given while the clock was ahead. A process that lives renews again within a third of a lease, which mends it.
  const ahead = database.prepare(
    `select ${columns} from reservation
     where state = 'open' and lease_until_ms > ?1 + ?3 * coalesce(lease_ms, ?2) order by lease_until_ms, request_id`,
  );
  const owners = database.prepare(
    "select distinct owner from reservation where state = 'open' and owner is not null order by owner",
  );
  const owned = database.prepare(
    `select ${columns} from reservation where state = 'open' and owner = ? order by lease_until_ms, request_id limit ?`,
  );
  const giveBack = openGiveBack(database, parts);
  return {
    expire(_argument, nowMs) {
      parts.rateWindow.sweep(nowMs);
      const ended = due.all(nowMs, limits.ledgerGroupMax);
      for (const row of ended) giveBack(row, nowMs);
      const impossible = ahead.all(nowMs, parts.leaseMs, limits.leasesAheadMax).filter((row) => {
        const owner = textOrNullOf(row, "owner");
        return owner === null || !parts.isPresent(owner);
      });
      const fitting = impossible.slice(0, limits.ledgerGroupMax - ended.length);
      for (const row of fitting) giveBack(row, nowMs);
      return ended.length + fitting.length;
    },
    giveBackDead(_argument, nowMs) {
      let count = 0;
      for (const row of owners.all()) {
        const owner = textOf(row, "owner");
        if (parts.isPresent(owner)) continue;
        const held = owned.all(owner, limits.ledgerGroupMax - count);
        for (const reservation of held) giveBack(reservation, nowMs);
        count += held.length;
        if (count >= limits.ledgerGroupMax) break;
      }
      return { count, known: true, againInMs: null };
    },
  };
}

function openGiveBack(
  database: DatabaseSync,
  { accounts, budgets }: Pick<ResolveParts, "accounts" | "budgets">,
): (reservation: Row, nowMs: number) => void {
  const close = database.prepare(
    `update reservation set state = 'expired', charged_nanos = 0, outcome = 'lease-lost', resolved_at_ms = ?,
       resolved_sequence = ?, head = ? where request_id = ? and state = 'open'`,
  );
  return (row, nowMs) => {
    const requestId = idOf(row, "request_id", "req_");
    const written = accounts.move(
      idOf(row, "account_id", "acct_"),
      {
        kind: "expire",
        balanceDeltaNanos: 0n,
        heldDeltaNanos: -bigOf(row, "reserved_nanos"),
        runningDelta: -1,
        actor: "service",
        requestId,
        note: null,
      },
      nowMs,
    );
    const held = bigOf(row, "reserved_nanos");
    budgets.resolve(budgetedKeyOf(row), { held, charged: 0n });
    close.run(nowMs, written.sequence, written.hash, requestId);
  };
}

function budgetedKeyOf(row: Row): Parameters<Budgets["resolve"]>[0] {
  const beginMs = numberOrNullOf(row, "budget_begin_ms");
  return { accountId: textOf(row, "account_id"), keyId: textOf(row, "key_id"), beginMs };
}
