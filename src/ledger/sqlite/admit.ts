import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type AllowanceDecision, decideAllowance } from "../../admission/output-allowance.ts";
import type { Prices } from "../../admission/price.ts";
import { availableOf, type BudgetState } from "../budget.ts";
import type { AccountId } from "../scalars.ts";
import type { Admission, AdmitOrder, Caller } from "../ledger.ts";
import type { Accounts } from "./accounts.ts";
import type { Budgets } from "./budgets.ts";
import type { ActiveAccount, KeyGate } from "./authorize.ts";
import type { StoreOperations } from "../store-operations.ts";
import {
  budgetExceeded,
  endedReservation,
  insufficientCredit,
  tooManyConcurrent,
} from "../refusals.ts";
import type { RateWindow } from "./rate-window.ts";
import { bigOf, numberOf, numberOrNullOf, textOf, type Row } from "../row.ts";
import { getRow } from "./get-row.ts";

/** What `admit` decides by. */
export interface AdmitRules {
  /** Of the price list `default`, until the ledger has one of that name. */
  readonly prices: Prices;
  readonly concurrencyPerAccount: number;
  readonly leaseMs: number;
  /** The process that reserves; absent: nothing tells whether it lives, so that its leases alone count. */
  readonly owner?: string;
}

interface AdmitParts {
  readonly accounts: Accounts;
  readonly budgets: Budgets;
  readonly payGrant: (account: AccountId, nowMs: number) => void;
  readonly keyGate: KeyGate;
  readonly rateWindow: RateWindow;
}

/** Key, account, concurrency, allowance and reservation in the caller's one transaction. */
export function openAdmit(
  database: DatabaseSync,
  rules: AdmitRules,
  parts: AdmitParts,
): StoreOperations["admit"] {
  const { find, insert } = prepareReservation(database);
  const freeInMs = openFreeIn(database, rules.leaseMs);
  return (order, nowMs) => {
    const { caller, requestId } = order;
    const earlier = getRow(find, requestId);
    if (earlier !== null) return earlierAdmission(earlier, order);
    let account = parts.keyGate.ensureActive(caller, nowMs);
    const { concurrentRequests } = account.limits;
    if (account.running >= concurrentRequests) {
      giveTicketBack(caller, parts.rateWindow);
      throw tooManyConcurrent(concurrentRequests, freeInMs(caller.accountId, nowMs));
    }
    if (account.grantIsDue) {
      parts.payGrant(caller.accountId, nowMs);
      account = parts.keyGate.ensureActive(caller, nowMs);
    }
    const budget = parts.budgets.present(caller, account.key, nowMs);
    const decision = decide(order, account, budget);
    const { allowance, reservedNanos } = decision;
    const written = parts.accounts.move(
      caller.accountId,
      {
        kind: "reserve",
        balanceDeltaNanos: 0n,
        heldDeltaNanos: reservedNanos,
        runningDelta: 1,
        actor: caller.keyId,
        requestId,
        note: null,
        after: account.end,
      },
      nowMs,
    );
    if (budget !== null) parts.budgets.hold(caller, reservedNanos);
    insert.run(
      requestId,
      caller.accountId,
      caller.keyId,
      order.format,
      order.streamed ? 1 : 0,
      order.label,
      order.inputBound,
      allowance,
      account.priceList,
      account.prices.inputNanosPerMillion,
      account.prices.cachedInputNanosPerMillion ?? null,
      account.prices.outputNanosPerMillion,
      reservedNanos,
      nowMs,
      nowMs + rules.leaseMs,
      written.sequence,
      written.hash,
      order.owner ?? rules.owner ?? null,
      rules.leaseMs,
      budget?.beginMs ?? null,
    );
    return { allowance, reservedNanos };
  };
}

/** What fits the credit and the budget; throws the refusal for the one of them that leaves less. */
function decide(
  order: AdmitOrder,
  account: ActiveAccount,
  budget: BudgetState | null,
): Extract<AllowanceDecision, { readonly granted: true }> {
  const creditNanos = account.balanceNanos - account.heldNanos;
  const availableNanos = availableOf(creditNanos, budget);
  const decision = decideAllowance(
    {
      inputBound: order.inputBound,
      requested: order.outputTokensRequested,
      fitting: order.outputTokensFitting,
      availableNanos,
      outputTokensMax: account.limits.outputTokensMax,
    },
    account.prices,
  );
  if (decision.granted) return decision;
  const shortage = { ...account, ...decision, ...order };
  if (budget === null || availableNanos === creditNanos) throw insufficientCredit(shortage);
  throw budgetExceeded(shortage, {
    ...budget,
    keyId: order.caller.keyId,
    keyName: textOf(account.key, "name"),
  });
}

function prepareReservation(database: DatabaseSync): {
  readonly find: StatementSync;
  readonly insert: StatementSync;
} {
  const find = database.prepare(
    "select account_id, state, allowance, reserved_nanos from reservation where request_id = ?",
  );
  const insert = database.prepare(
    `insert into reservation (request_id, account_id, key_id, state, format, streamed, label, input_bound, allowance,
       price_list, input_nanos_per_million, cached_input_nanos_per_million, output_nanos_per_million, reserved_nanos,
       admitted_at_ms, lease_until_ms, reserved_sequence, head, owner, lease_ms, budget_begin_ms)
     values (?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return { find, insert };
}

/**
 * Milliseconds after which a slot can be free: 0 while a process that renews runs one of the requests, which may end at
 * any time; else what is left of the leases of processes that have fallen silent.
 */
function openFreeIn(
  database: DatabaseSync,
  leaseMs: number,
): (account: AccountId, nowMs: number) => number {
  // The plus keeps SQLite from reading all receipts of the account: few requests run at a time, and an index of the
  // running ones by account would cost every settlement more than this costs a refusal.
  const running = database.prepare(
    "select lease_until_ms, lease_ms from reservation where state = 'open' and +account_id = ?",
  );
  return (account, nowMs) => {
    const waits = running.all(account).map((row) => {
      const leftMs = numberOf(row, "lease_until_ms") - nowMs;
      // A process that renews always has about two thirds of a lease left, or more.
      return leftMs > (numberOrNullOf(row, "lease_ms") ?? leaseMs) / 2 ? 0 : leftMs;
    });
    return Math.max(Math.min(...waits), 0);
  };
}

/** The same answer for the same request, as long as its reservation is open. */
function earlierAdmission(row: Row, order: AdmitOrder): Admission {
  if (textOf(row, "account_id") !== order.caller.accountId)
    throw new Error(`ledger: request ${order.requestId} belongs to another account`);
  if (textOf(row, "state") !== "open") throw endedReservation();
  return {
    allowance: numberOf(row, "allowance"),
    reservedNanos: bigOf(row, "reserved_nanos"),
  };
}

/** A request answered 429 does not count; a refusal is committed like any answer, so the ticket returns with it. */
export function giveTicketBack(caller: Caller, rateWindow: RateWindow): void {
  if (caller.ticket !== null) rateWindow.giveBack(caller.keyId, caller.ticket);
}
