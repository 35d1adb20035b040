import { formatCredit } from "../admission/price.ts";
import { type Checkpoint, type JournalEntry, isPaidGrant } from "./journal.ts";
import type { ProblemCode, ReservationToVerify } from "./verify-entry.ts";

/** An account's row, with what its reservations and its checkpoint say. */
export interface AccountToVerify {
  readonly id: string;
  readonly balanceNanos: bigint;
  readonly heldNanos: bigint;
  readonly grantLeftNanos: bigint;
  readonly running: number;
  readonly entries: number;
  /** Hexadecimal. */
  readonly head: string;
  /** Rows of the account's reservations in state `open`. */
  readonly open: { readonly count: number; readonly reservedNanos: bigint };
  readonly checkpoint: CheckpointToVerify | null;
}

/** A checkpoint with what the receipts say about the entries that it replaced. */
export interface CheckpointToVerify extends Checkpoint {
  /** Charges of the requests that were resolved up to it. */
  readonly chargedNanos: bigint;
  /** Requests that were reserved up to it and not resolved up to it. */
  readonly running: readonly {
    readonly requestId: string;
    readonly reservation: ReservationToVerify;
  }[];
}

/** What the entries of an account come to. */
export interface AccountSums {
  balance: bigint;
  held: bigint;
  ofGrants: OfGrants;
}

/** What of the balance is left of grants: from `least` to `most`, the same where no checkpoint stands for entries. */
interface OfGrants {
  readonly least: bigint;
  readonly most: bigint;
}

/** Says what is wrong with an account, and at which entry. */
export type Report = (code: ProblemCode, message: string, at?: number | null) => void;

/** After a checkpoint, which does not say what was left of grants: none of the balance, or all of it. */
export function ofGrantsAfter(checkpoint: Checkpoint | null): OfGrants {
  return { least: 0n, most: checkpoint?.balanceNanos ?? 0n };
}

/** Adds an entry. */
export function addToSums(sums: AccountSums, entry: JournalEntry): void {
  const { balanceDeltaNanos: delta } = entry;
  sums.balance += delta;
  sums.held += entry.heldDeltaNanos;
  const { least, most } = sums.ofGrants;
  // What goes is of grants first; of what comes, the period's grant alone is.
  if (delta < 0n) sums.ofGrants = { least: atLeast0(least + delta), most: atLeast0(most + delta) };
  else if (isPaidGrant(entry)) sums.ofGrants = { least: least + delta, most: most + delta };
}

function atLeast0(nanos: bigint): bigint {
  return nanos > 0n ? nanos : 0n;
}

/** Whether an account's row says what its entries and its open reservations come to. */
export function verifyRow(
  account: Omit<AccountToVerify, "checkpoint">,
  parts: {
    readonly sums: AccountSums;
    /** How many requests the entries leave open. */
    readonly open: number;
    readonly report: Report;
  },
): void {
  const { open, report, sums } = parts;
  const { balanceNanos, grantLeftNanos, heldNanos } = account;
  if (sums.balance !== balanceNanos)
    report(
      "balance-differs",
      `the account's balance is ${formatCredit(balanceNanos)}, its entries add up to ${formatCredit(sums.balance)}`,
    );
  if (sums.held !== heldNanos)
    report(
      "held-differs",
      `the account holds ${formatCredit(heldNanos)}, its entries add up to ${formatCredit(sums.held)}`,
    );
  if (heldNanos < 0n || heldNanos > balanceNanos)
    report("overspent", "in the account's row not 0 <= held <= balance");
  const { least, most } = sums.ofGrants;
  if (grantLeftNanos < least || grantLeftNanos > most)
    report(
      "grant-differs",
      `of grants the account has ${formatCredit(grantLeftNanos)} left, its entries leave ${formatCredit(least)}${least === most ? "" : ` to ${formatCredit(most)}`}`,
    );
  if (account.open.reservedNanos !== heldNanos)
    report(
      "held-differs",
      `the account holds ${formatCredit(heldNanos)}, its open reservations ${formatCredit(account.open.reservedNanos)}`,
    );
  if (account.running !== account.open.count || account.running !== open)
    report(
      "running-differs",
      `the account runs ${String(account.running)} requests, it has ${String(account.open.count)} open reservations and ${String(open)} that its entries leave open`,
    );
}
