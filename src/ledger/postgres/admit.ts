import { outputAllowanceCap } from "../../admission/output-allowance.ts";
import type { Prices } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import { budgetOf } from "../budget.ts";
import type { Admission, AdmitOrder, Caller } from "../ledger.ts";
import {
  budgetExceeded,
  endedReservation,
  insufficientCredit,
  type Shortage,
  type SpentBudget,
  throwRefusal,
  tooManyConcurrent,
} from "../refusals.ts";
import type { AccountId } from "../scalars.ts";
import { bigOf, numberOf, numberOrNullOf, textOf, type Row } from "../row.ts";
import { openBatches, type BatchOrder } from "./batches.ts";
import { type Clock, type Database, isLostAnswer } from "./database.ts";
import type { PostgresOperations, StoreGroup } from "../store-operations.ts";

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
  text: `select place, verdict, granted, nanos, balance, held, affordable, free_in_ms, budget
    from tributary.admit_each(
      $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
};

const begin = {
  name: "begin-period",
  text: "select tributary.begin_period($1, $2, $3, $4, $5)",
};

interface AskedOrder extends AdmitOrder, BatchOrder {
  readonly repeated: boolean;
}

interface AdmitParts {
  readonly onGroup: ((group: StoreGroup) => void) | undefined;
  readonly clock: Clock;
  readonly payGrant: (account: AccountId) => Promise<unknown>;
}

/** Asked for a second time where the answer was lost, which the request id makes safe. */
export function openAdmit(
  database: Database,
  rules: OwnedRules,
  { clock, onGroup, payGrant }: AdmitParts,
): PostgresOperations["admit"] {
  const batches = openBatches<AskedOrder>(database, {
    statement: admit,
    busyMs: rules.busyMs,
    onGroup,
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
    let repeated = false;
    for (let tries = 1; ; tries += 1) {
      try {
        const row = await batches({ ...asked, repeated });
        const verdict = textOf(row, "verdict");
        if (verdict === "grant") await payGrant(accountId);
        else if (verdict !== "period") return admissionOf(row, order);
        else await beginPeriod(database, order.caller, { row: budgetRowOf(row), atMs: clock() });
      } catch (error) {
        repeated ||= isLostAnswer(error);
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
  if (verdict === "credit") throw insufficientCredit(shortageOf(row, order));
  if (verdict === "budget") throw budgetExceeded(shortageOf(row, order), spentBudgetOf(row, order));
  return {
    allowance: numberOf(row, "granted"),
    reservedNanos: bigOf(row, "nanos"),
  };
}

function shortageOf(row: Row, { inputBound, outputTokensRequested }: AdmitOrder): Shortage {
  return {
    balanceNanos: bigOf(row, "balance"),
    heldNanos: bigOf(row, "held"),
    neededNanos: bigOf(row, "nanos"),
    affordable: numberOf(row, "affordable"),
    inputBound,
    outputTokensRequested,
  };
}

function spentBudgetOf(row: Row, { caller: { keyId } }: AdmitOrder): SpentBudget {
  const columns = budgetRowOf(row);
  const budget = budgetOf(columns, numberOf(columns, "now"));
  if (budget === null) throw new Error("ledger: a refusal for a budget names none");
  return { ...budget, keyId, keyName: textOf(columns, "key_name") };
}

const wholeColumns: ReadonlySet<string> = new Set([
  "now",
  "budget_nanos",
  "budget_begin_ms",
  "budget_end_ms",
  "budget_spent_nanos",
  "budget_held_nanos",
]);

/** The columns of a key that `admit_each` answers, as they are in its row: JSON has no integers of any size. */
function budgetRowOf({ budget }: Row): Row {
  const columns = Object.entries((budget ?? {}) as Readonly<Record<string, string | null>>);
  return Object.fromEntries(
    columns.map(([name, text]) => [
      name,
      text !== null && wholeColumns.has(name) ? BigInt(text) : text,
    ]),
  );
}

/** The next period of a key's budget begins: the one that the server's time is in. */
async function beginPeriod(
  database: Database,
  { accountId, keyId }: Caller,
  { atMs, row }: { readonly row: Row; readonly atMs: number | null },
): Promise<void> {
  const budget = budgetOf(row, numberOf(row, "now"));
  if (budget === null) throw new Error("ledger: a period that is over is of no budget");
  await database.query(begin, accountId, keyId, budget.beginMs, budget.endMs, atMs);
}
