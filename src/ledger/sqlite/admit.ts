import type { DatabaseSync } from "node:sqlite";
import { decideAllowance } from "../../admission/output-allowance.ts";
import type { Prices } from "../../admission/price.ts";
import type { Admission, AdmitOrder, Caller } from "../ledger.ts";
import type { Accounts } from "./accounts.ts";
import type { KeyGate } from "./authorize.ts";
import type { StoreOperations } from "../operations.ts";
import { endedReservation, insufficientCredit, tooManyConcurrent } from "../refusals.ts";
import type { RateWindow } from "./rate-window.ts";
import { bigOf, numberOf, textOf, type Row } from "../row.ts";
import { getRow } from "./get-row.ts";

/** What `admit` decides by. */
export interface AdmitRules {
  readonly prices: Prices;
  readonly concurrencyPerAccount: number;
  readonly leaseMs: number;
}

interface AdmitParts {
  readonly accounts: Accounts;
  readonly keyGate: KeyGate;
  readonly rateWindow: RateWindow;
}

/** Key, account, concurrency, allowance and reservation in the caller's one transaction. */
export function openAdmit(
  database: DatabaseSync,
  rules: AdmitRules,
  parts: AdmitParts,
): StoreOperations["admit"] {
  const find = database.prepare(
    `select account_id, state, allowance, reserved_nanos, input_nanos_per_million, output_nanos_per_million
     from reservation where request_id = ?`,
  );
  const insert = database.prepare(
    `insert into reservation (request_id, account_id, key_id, state, format, streamed, input_bound, allowance,
       input_nanos_per_million, output_nanos_per_million, reserved_nanos, admitted_at_ms, lease_until_ms,
       reserved_sequence, head)
     values (?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (order, nowMs) => {
    const { caller, requestId } = order;
    const earlier = getRow(find, requestId);
    if (earlier !== null) return earlierAdmission(earlier, order);
    parts.keyGate.ensureActive(caller.accountId, caller.keyId);
    const account = parts.accounts.find(caller.accountId);
    if (account === null) throw new Error(`ledger: key ${caller.keyId} has no account`);
    if (account.running >= rules.concurrencyPerAccount) {
      giveTicketBack(caller, parts.rateWindow);
      throw tooManyConcurrent(rules.concurrencyPerAccount);
    }
    const decision = decideAllowance(
      {
        inputBound: order.inputBound,
        requested: order.outputTokensRequested,
        fitting: order.outputTokensFitting,
        availableNanos: account.balanceNanos - account.heldNanos,
      },
      rules.prices,
    );
    if (!decision.granted) throw insufficientCredit({ ...account, ...decision, ...order });
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
      },
      nowMs,
    );
    insert.run(
      requestId,
      caller.accountId,
      caller.keyId,
      order.format,
      order.streamed ? 1 : 0,
      order.inputBound,
      allowance,
      rules.prices.inputNanosPerMillion,
      rules.prices.outputNanosPerMillion,
      reservedNanos,
      nowMs,
      nowMs + rules.leaseMs,
      written.sequence,
      written.hash,
    );
    return { allowance, reservedNanos, prices: rules.prices };
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
    prices: {
      inputNanosPerMillion: bigOf(row, "input_nanos_per_million"),
      outputNanosPerMillion: bigOf(row, "output_nanos_per_million"),
    },
  };
}

/** A request answered 429 does not count; a refusal is committed like any answer, so the ticket returns with it. */
export function giveTicketBack(caller: Caller, rateWindow: RateWindow): void {
  if (caller.ticket !== null) rateWindow.giveBack(caller.keyId, caller.ticket);
}
