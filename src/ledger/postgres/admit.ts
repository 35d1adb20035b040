import { outputAllowanceCap } from "../../admission/output-allowance.ts";
import type { Prices } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import type { Admission, AdmitOrder } from "../ledger.ts";
import { endedReservation, insufficientCredit, tooManyConcurrent } from "../refusals.ts";
import { bigOf, numberOf, numberOrNullOf, textOf, type Row } from "../row.ts";
import { throwRefusal } from "./authorize.ts";
import { type Clock, type Database, isLostAnswer } from "./database.ts";
import type { PostgresOperations } from "../store-operations.ts";

/** What `admit` decides by. */
export interface AdmitRules {
  readonly prices: Prices;
  readonly concurrencyPerAccount: number;
  readonly leaseMs: number;
}

type OwnedRules = AdmitRules & { readonly owner: string | null };

const admit = {
  name: "admit",
  text: `select verdict, granted, nanos, input_price, output_price, balance, held, affordable, free_in_ms
    from tributary.admit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
};

/** One round trip; a second one where the answer was lost, which the request id makes safe. */
export function openAdmit(
  database: Database,
  rules: OwnedRules,
  clock: Clock,
): PostgresOperations["admit"] {
  return async (order) => {
    for (let tries = 1; ; tries += 1) {
      try {
        const [row] = await database.query(admit, ...valuesOf(order, rules, tries > 1), clock());
        if (row === undefined) throw new Error("ledger: no answer from admit");
        return admissionOf(row, order, rules);
      } catch (error) {
        if (!isLostAnswer(error) || tries >= limits.ledgerLostAnswerTries) throw error;
      }
    }
  };
}

function valuesOf(order: AdmitOrder, rules: OwnedRules, repeated: boolean): readonly unknown[] {
  const { caller, outputTokensFitting, outputTokensRequested } = order;
  const dot = caller.ticket?.indexOf(".") ?? 0;
  return [
    caller.accountId,
    caller.keyId,
    order.requestId,
    caller.ticket?.slice(0, dot) ?? null,
    caller.ticket?.slice(dot + 1) ?? null,
    repeated,
    order.inputBound,
    outputAllowanceCap(outputTokensRequested, outputTokensFitting),
    outputTokensRequested !== null,
    limits.outputAllowanceMax,
    order.format,
    order.streamed,
    rules.prices.inputNanosPerMillion,
    rules.prices.outputNanosPerMillion,
    rules.concurrencyPerAccount,
    rules.leaseMs,
    rules.owner,
  ];
}

function admissionOf(row: Row, order: AdmitOrder, rules: AdmitRules): Admission {
  const verdict = textOf(row, "verdict");
  throwRefusal(verdict);
  if (verdict === "concurrent")
    throw tooManyConcurrent(rules.concurrencyPerAccount, numberOrNullOf(row, "free_in_ms") ?? 0);
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
    prices: {
      inputNanosPerMillion: bigOf(row, "input_price"),
      outputNanosPerMillion: bigOf(row, "output_price"),
    },
  };
}
