import { outputAllowanceCap } from "../../admission/output-allowance.ts";
import type { Prices } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import type { Admission, AdmitOrder } from "../ledger.ts";
import { endedReservation, insufficientCredit, tooManyConcurrent } from "../refusals.ts";
import { bigOf, numberOf, numberOrNullOf, textOf, type Row } from "../row.ts";
import { throwRefusal } from "./authorize.ts";
import { openBatches, type BatchOrder } from "./batches.ts";
import { type Clock, type Database, isLostAnswer } from "./database.ts";
import type { PostgresOperations } from "../store-operations.ts";

/** What `admit` decides by. */
export interface AdmitRules {
  /** Of the price list `default`, until the ledger has one of that name. */
  readonly prices: Prices;
  readonly concurrencyPerAccount: number;
  readonly leaseMs: number;
}

type OwnedRules = AdmitRules & { readonly owner: string | null; readonly busyMs: number };

const admit = {
  name: "admit",
  text: `select place, verdict, granted, nanos, balance, held, affordable, free_in_ms
    from tributary.admit_each(
      $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
};

interface AskedOrder extends AdmitOrder, BatchOrder {
  readonly repeated: boolean;
}

/** Asked for a second time where the answer was lost, which the request id makes safe. */
export function openAdmit(
  database: Database,
  rules: OwnedRules,
  clock: Clock,
): PostgresOperations["admit"] {
  const batches = openBatches<AskedOrder>(database, {
    statement: admit,
    busyMs: rules.busyMs,
    values: (orders, lockMs) => [
      ...valuesOf(orders, rules),
      lockMs,
      clock(),
      orders.map(({ label }) => label),
    ],
  });
  return async (order) => {
    const { accountId, keyId } = order.caller;
    const asked = { ...order, accountId, lockedAs: keyId, onlyOnce: order.requestId };
    for (let tries = 1; ; tries += 1) {
      try {
        return admissionOf(await batches({ ...asked, repeated: tries > 1 }), order);
      } catch (error) {
        if (!isLostAnswer(error) || tries >= limits.ledgerLostAnswerTries) throw error;
      }
    }
  };
}

function valuesOf(orders: readonly AskedOrder[], rules: OwnedRules): readonly unknown[] {
  const tickets = orders.map(({ caller: { ticket } }) => {
    const dot = ticket?.indexOf(".") ?? 0;
    return ticket === null ? [null, null] : [ticket.slice(0, dot), ticket.slice(dot + 1)];
  });
  return [
    orders.map(({ caller }) => caller.accountId),
    orders.map(({ caller }) => caller.keyId),
    orders.map(({ requestId }) => requestId),
    tickets.map(([atMs]) => atMs),
    tickets.map(([, id]) => id),
    orders.map(({ repeated }) => repeated),
    orders.map(({ inputBound }) => inputBound),
    orders.map(({ outputTokensFitting, outputTokensRequested }) =>
      outputAllowanceCap(outputTokensRequested, outputTokensFitting),
    ),
    orders.map(({ outputTokensRequested }) => outputTokensRequested !== null),
    orders.map(({ format }) => format),
    orders.map(({ streamed }) => streamed),
    limits.outputAllowanceMax,
    rules.prices.inputNanosPerMillion,
    rules.prices.outputNanosPerMillion,
    rules.concurrencyPerAccount,
    rules.leaseMs,
    rules.owner,
  ];
}

function admissionOf(row: Row, order: AdmitOrder): Admission {
  const verdict = textOf(row, "verdict");
  throwRefusal(verdict, "generate");
  if (verdict === "concurrent")
    throw tooManyConcurrent(numberOf(row, "granted"), numberOrNullOf(row, "free_in_ms") ?? 0);
  if (verdict === "ended") throw endedReservation();
  if (verdict === "credit")
    throw insufficientCredit({
      balanceNanos: bigOf(row, "balance"),
      heldNanos: bigOf(row, "held"),
      neededNanos: bigOf(row, "nanos"),
      affordable: numberOf(row, "affordable"),
      inputBound: order.inputBound,
      outputTokensRequested: order.outputTokensRequested,
    });
  return {
    allowance: numberOf(row, "granted"),
    reservedNanos: bigOf(row, "nanos"),
  };
}
