import { chargeNanos, type Prices, type UsageToPay } from "../admission/price.ts";
import type { JournalEntry } from "./journal.ts";

/** What can be wrong with a ledger. */
export type ProblemCode =
  | "entry-changed" // its hash is not that of its content and of the entry before it
  | "entry-missing"
  | "entry-unexpected" // there are more entries than the account has made
  | "entry-impossible" // no movement of this kind has these amounts
  | "resolved-twice"
  | "receipt-differs" // the request's row and its entries disagree
  | "overspent" // after this entry not 0 <= held <= balance
  | "head-differs" // a head that was kept is not that of the entry
  | "balance-differs"
  | "held-differs"
  | "running-differs"
  | "checkpoint-differs"
  | "reference-differs" // what is kept of a reference is not what its entry says
  | "refund-differs"
  | "budget-differs" // what is kept beside a key and what its receipts say
  | "grant-differs" // what an account has left of grants is not what its entries leave
  | "usage-differs" // kept sums are not what the receipts come to
  | "account-missing";

/** The parts of a request's row that its entries must agree with. */
export interface ReservationToVerify {
  readonly keyId: string;
  readonly state: "open" | "settled" | "expired";
  readonly prices: Prices;
  readonly reservedNanos: bigint;
  readonly chargedNanos: bigint | null;
  /** null: nothing to charge for. */
  readonly usage: UsageToPay | null;
  readonly admittedAtMs: number;
  readonly resolvedAtMs: number | null;
  readonly reservedSequence: number | null;
  readonly resolvedSequence: number | null;
  /** Hexadecimal. */
  readonly head: string | null;
}

/** A request that runs after an entry: what its own entry has reserved, and its row. */
export interface OpenRequest {
  readonly heldNanos: bigint;
  readonly reservation: ReservationToVerify | null;
}

/** What is wrong with an entry. */
export type Finding = readonly [code: ProblemCode, message: string];

/** What is wrong with an entry by itself, with its request, or with what came before it. */
export function movementProblem(
  entry: JournalEntry,
  request: OpenRequest | null,
  before: OpenRequest | null,
): Finding | null {
  const { balanceDeltaNanos: balance, heldDeltaNanos: held, kind, requestId } = entry;
  const ofRequest = kind === "reserve" || kind === "settle" || kind === "expire";
  if (ofRequest !== (requestId !== null))
    return ["entry-impossible", `an entry of kind ${kind} ${ofRequest ? "has" : "has no"} request`];
  if (!possible(kind, balance, held))
    return ["entry-impossible", `no ${kind} changes balance and held like this`];
  if (requestId === null) return null;
  if (kind === "reserve" && before !== null)
    return ["entry-impossible", "its request had been reserved before"];
  if (request === null)
    return [
      "resolved-twice",
      "its request had been resolved before, or not reserved by this account",
    ];
  const { reservation } = request;
  if (reservation === null)
    return ["receipt-differs", "its request has no receipt of this account"];
  if (kind === "reserve")
    return agrees(entry, reservation.reservedSequence, reservation.admittedAtMs) &&
      held === reservation.reservedNanos &&
      entry.actor === reservation.keyId
      ? null
      : ["receipt-differs", "the receipt has another reservation"];
  if (held !== -request.heldNanos)
    return ["entry-impossible", "it does not give back what its request has reserved"];
  return resolutionProblem(entry, reservation);
}

function resolutionProblem(entry: JournalEntry, reservation: ReservationToVerify): Finding | null {
  const charged = -entry.balanceDeltaNanos;
  if (charged > reservation.reservedNanos)
    return ["entry-impossible", "more was charged than had been reserved"];
  const same =
    agrees(entry, reservation.resolvedSequence, reservation.resolvedAtMs) &&
    reservation.state === (entry.kind === "settle" ? "settled" : "expired") &&
    reservation.chargedNanos === charged &&
    entry.actor === (entry.kind === "settle" ? reservation.keyId : "service");
  if (!same) return ["receipt-differs", "the receipt tells another end of the request"];
  const { prices, reservedNanos, usage } = reservation;
  const owed = usage === null ? 0n : chargeNanos(usage, prices, reservedNanos);
  return owed === charged
    ? null
    : ["receipt-differs", "the charge is not what the receipt's tokens cost"];
}

function agrees(entry: JournalEntry, sequence: number | null, atMs: number | null): boolean {
  return entry.sequence === sequence && entry.atMs === atMs;
}

function possible(kind: JournalEntry["kind"], balance: bigint, held: bigint): boolean {
  switch (kind) {
    case "credit":
      return balance > 0n && held === 0n;
    case "takeback":
      return balance < 0n && held === 0n;
    case "top_up":
    case "grant":
    case "refund":
    case "correction":
      return balance !== 0n && held === 0n;
    case "reserve":
      return balance === 0n && held >= 0n;
    case "settle":
      return balance <= 0n && held <= 0n;
    case "expire":
      return balance === 0n && held <= 0n;
    case "checkpoint":
      return balance === 0n && held === 0n;
    default:
      return kind satisfies never;
  }
}

/** A receipt shows the head of its newest entry, and a copy may have been kept: a chain that was made anew has another. */
export function receiptHeadProblem(
  entry: JournalEntry,
  hash: string,
  request: OpenRequest | null,
): Finding | null {
  const reservation = request?.reservation ?? null;
  if (reservation === null) return null;
  const newest = reservation.resolvedSequence ?? reservation.reservedSequence;
  return newest !== entry.sequence || reservation.head === hash
    ? null
    : ["receipt-differs", "the receipt's head is of another entry: the chain was made anew"];
}
