import { formatCredit } from "../../admission/price.ts";
import { type CreditKind, grantReferencePrefix, toHex } from "../journal.ts";
import { OperatorError } from "../operator-error.ts";
import {
  ensureAmount,
  ensureLine,
  ensureNote,
  ensurePossible,
  unknownAccount,
} from "../operator-input.ts";
import { type Account, accountColumns, accountOf } from "../records.ts";
import type { CreditNanos } from "../scalars.ts";
import { bigOf, bytesOf, numberOf, textOf } from "../row.ts";
import { archivedUntil } from "../archive/archive-receipts.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import { type EntryRow, keptColumns, keptEntryOf } from "./entry-row.ts";
import { askOne, type Steps } from "./steps.ts";

/** What may be said of credit beside its amount. */
export interface CreditFacts {
  readonly note?: string | null;
  /** Absent: `top_up`. */
  readonly kind?: CreditKind;
  /** A name that no other entry of the account has: a repeat answers the first entry. */
  readonly reference?: string | null;
  /** The request whose charge a refund gives back. */
  readonly receipt?: string | null;
}

/** Credit to add, or to take back where the amount is negative. */
export interface CreditOrder extends CreditFacts {
  readonly id: string;
  readonly amountNanos: CreditNanos;
}

/** The entry that was written, or was there under the same reference, and the account as it is now. */
export interface Credited {
  readonly entry: EntryRow;
  readonly account: Account;
}

type WholeOrder = CreditOrder & Required<CreditFacts>;

const find = `select ${accountColumns} from tributary.account where id = $1`;

/** Adds credit, or takes some back. A reference that the account has is answered with its entry, and nothing moves. */
export function* creditAccount(given: CreditOrder, context: ChangeContext): Steps<Credited> {
  const order = { note: null, kind: "top_up", reference: null, receipt: null, ...given } as const;
  const row = yield* askOne(`${find} for no key update`, order.id);
  if (row === null) throw unknownAccount(order.id);
  const before = accountOf(row);
  ensureOrder(order);
  const known = yield* findReference(order);
  if (known !== null) return { entry: known, account: before };
  ensurePossible(before, order.amountNanos);
  if (order.receipt !== null) yield* ensureRefundable(order, order.receipt);
  const entry = yield* write(order, before, context);
  const account = accountOf((yield* askOne(find, order.id)) ?? row);
  yield* audit(context, {
    action: "account.credit",
    target: before.id,
    before: { balance: formatCredit(before.balanceNanos) },
    after: factsOf(order, account),
  });
  return { entry, account };
}

function ensureOrder({ amountNanos, kind, note, receipt, reference }: WholeOrder): void {
  ensureAmount(amountNanos);
  ensureNote(note);
  ensureLine("reference", reference);
  if (reference?.startsWith(grantReferencePrefix) === true)
    throw new OperatorError(
      "invalid_value",
      `References that begin with ${JSON.stringify(grantReferencePrefix)} are those of the grants that the service pays each period. Give this movement another reference.`,
      { param: "reference" },
    );
  if (receipt !== null && kind !== "refund")
    throw new OperatorError(
      "invalid_value",
      `A receipt belongs to a refund, and this is a ${kind}. Leave it out, or make it a refund.`,
      { param: "receipt" },
    );
}

function* findReference(order: WholeOrder): Steps<EntryRow | null> {
  const { id, reference } = order;
  if (reference === null) return null;
  const row = yield* askOne(
    `select ${keptColumns} from tributary.kept_credit where account_id = $1 and reference = $2`,
    id,
    reference,
  );
  if (row === null) return null;
  const entry = keptEntryOf(row);
  const { balanceDeltaNanos, kind, receipt } = entry;
  if (balanceDeltaNanos === order.amountNanos && kind === order.kind && receipt === order.receipt)
    return entry;
  const of = receipt === null ? "" : ` for ${receipt}`;
  throw new OperatorError(
    "reference_conflict",
    `The reference ${JSON.stringify(reference)} is that of entry ${String(entry.sequence)} of ${id}: a ${kind} of ${formatCredit(balanceDeltaNanos)}${of}. Give another movement a reference of its own.`,
    { param: "reference" },
  );
}

/** The account's row is locked, so that no other refund of the receipt comes between, and the receipt's, so that it stays. */
function* ensureRefundable({ amountNanos, id }: WholeOrder, receipt: string): Steps<void> {
  const row = yield* askOne(
    `select state, charged_nanos, refunded_nanos from tributary.reservation
     where account_id = $1 and request_id = $2 for no key update`,
    id,
    receipt,
  );
  if (row === null)
    throw new OperatorError(
      "not_found",
      `${id} has no receipt ${receipt}${yield* butArchived(id)}. \`tributary receipt ID\` shows one with its account.`,
      { param: "receipt" },
    );
  if (textOf(row, "state") === "open")
    throw new OperatorError(
      "not_possible",
      `${receipt} still runs, so that nothing was charged yet. Refund it when it has ended.`,
      { param: "receipt" },
    );
  const chargedNanos = bigOf(row, "charged_nanos");
  const refundedNanos = bigOf(row, "refunded_nanos");
  const after = refundedNanos + amountNanos;
  if (after >= 0n && after <= chargedNanos) return;
  throw new OperatorError(
    "not_possible",
    amountNanos > 0n
      ? `At most ${formatCredit(chargedNanos - refundedNanos)} can be refunded of ${receipt}: it was charged ${formatCredit(chargedNanos)}, of which ${formatCredit(refundedNanos)} have been refunded.`
      : `At most ${formatCredit(refundedNanos)} of the refunds of ${receipt} can be taken back.`,
    { param: "amount" },
  );
}

function* butArchived(id: string): Steps<string> {
  const untilMs = yield* archivedUntil(id);
  if (untilMs === null) return "";
  return ` (those of requests that ended before ${new Date(untilMs).toISOString()} may be archived: give credit back without \`receipt\`)`;
}

function* write(
  order: WholeOrder,
  before: Account,
  { actor, nowMs }: ChangeContext,
): Steps<EntryRow> {
  const { amountNanos, kind, note, receipt, reference } = order;
  const accountId = before.id;
  const about = { accountId, kind, actor, note };
  const [written] = yield {
    type: "move",
    movement: { ...about, amountNanos, known: { reference, receipt } },
  };
  if (written === undefined) throw new Error("ledger: the entry was not written");
  return {
    ...about,
    sequence: numberOf(written, "sequence"),
    atMs: nowMs,
    balanceDeltaNanos: amountNanos,
    heldDeltaNanos: 0n,
    requestId: null,
    reference,
    receipt,
    balanceNanos: before.balanceNanos + amountNanos,
    heldNanos: before.heldNanos,
    hash: toHex(bytesOf(written, "hash")),
  };
}

function factsOf(order: WholeOrder, after: Account): Record<string, string | null> {
  const { amountNanos, kind, note, receipt, reference } = order;
  return {
    balance: formatCredit(after.balanceNanos),
    amount: formatCredit(amountNanos),
    kind,
    note,
    ...(reference === null ? {} : { reference }),
    ...(receipt === null ? {} : { receipt }),
  };
}
