import { formatCredit } from "../../admission/price.ts";
import { type JournalEntry, toHex } from "../journal.ts";
import { bigOf, bytesOf, idOf, numberOf, type Row, textOf, textOrNullOf } from "../row.ts";

/** An entry of a journal with what the account had after it. */
export interface EntryRow extends JournalEntry {
  readonly balanceNanos: bigint;
  readonly heldNanos: bigint;
  /** Hexadecimal. */
  readonly hash: string;
}

/** The columns of an entry that was kept for good, which `keptEntryOf` reads. */
export const keptColumns = `account_id, sequence, at_ms, kind, amount_nanos, actor, reference, receipt, note, hash,
  balance_nanos, held_nanos`;

/** An entry with a reference or a receipt, from columns of these names. */
export function keptEntryOf(row: Row): EntryRow {
  return {
    accountId: idOf(row, "account_id", "acct_"),
    sequence: numberOf(row, "sequence"),
    atMs: numberOf(row, "at_ms"),
    // A check of the table allows no other.
    kind: textOf(row, "kind") as EntryRow["kind"],
    balanceDeltaNanos: bigOf(row, "amount_nanos"),
    heldDeltaNanos: 0n,
    actor: textOf(row, "actor"),
    requestId: null,
    reference: textOrNullOf(row, "reference"),
    receipt: textOrNullOf(row, "receipt"),
    note: textOrNullOf(row, "note"),
    balanceNanos: bigOf(row, "balance_nanos"),
    heldNanos: bigOf(row, "held_nanos"),
    hash: toHex(bytesOf(row, "hash")),
  };
}

/** An entry as commands print it and as the API answers it: amounts are decimal strings of credits, times RFC 3339. */
export interface EntryJson {
  sequence: number;
  at: string;
  kind: string;
  amount: string;
  held_change: string;
  balance: string;
  held: string;
  actor: string;
  request: string | null;
  reference: string | null;
  receipt: string | null;
  note: string | null;
  hash: string;
}

/** The entry as `EntryJson` has it. */
export function entryToJson(entry: EntryRow): EntryJson {
  return {
    sequence: entry.sequence,
    at: new Date(entry.atMs).toISOString(),
    kind: entry.kind,
    amount: formatCredit(entry.balanceDeltaNanos),
    held_change: formatCredit(entry.heldDeltaNanos),
    balance: formatCredit(entry.balanceNanos),
    held: formatCredit(entry.heldNanos),
    actor: entry.actor,
    request: entry.requestId,
    reference: entry.reference,
    receipt: entry.receipt,
    note: entry.note,
    hash: entry.hash,
  };
}
