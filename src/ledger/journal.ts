import { hash } from "node:crypto";
import type { AccountId, CreditNanos } from "./scalars.ts";
import { bigOf, numberOf, type Row, textOf, textOrNullOf } from "./row.ts";

/**
 * Why an operator, or the service for one, changes a balance: paid for, given, a charge given back, put right. A negative
 * amount takes back.
 */
export const creditKinds = ["top_up", "grant", "refund", "correction"] as const;

/** One of `creditKinds`. */
export type CreditKind = (typeof creditKinds)[number];

/** What the references begin with of the grants that the service pays; no other entry has one that does. */
export const grantReferencePrefix = "grant:";

/** What kind of movement an entry is. `credit`: an account's starting credit; versions before wrote it and `takeback` for any. */
export type EntryKind =
  | CreditKind
  | "credit"
  | "takeback"
  | "reserve"
  | "settle"
  | "expire"
  | "checkpoint";

/** One entry of an account's journal. It is never changed; what its hash covers is fixed below. */
export interface JournalEntry {
  readonly accountId: string;
  /** From 1, without gaps within an account. */
  readonly sequence: number;
  readonly atMs: number;
  readonly kind: EntryKind;
  readonly balanceDeltaNanos: CreditNanos;
  readonly heldDeltaNanos: CreditNanos;
  /** The id of the caller's key; `oper_...` or `user:NAME` of who changed credit; `operator` of a checkpoint; else `service`. */
  readonly actor: string;
  readonly requestId: string | null;
  /** Under which name another system knows it: unique within the account. */
  readonly reference: string | null;
  /** The request whose charge a refund gives back. */
  readonly receipt: string | null;
  readonly note: string | null;
}

/** What of an entry is hashed; entries of requests have no reference and no receipt. */
export type EntryToHash = Omit<JournalEntry, "reference" | "receipt"> &
  Partial<Pick<JournalEntry, "reference" | "receipt">>;

/** An entry, from columns of its names. */
export function journalEntryOf(row: Row): JournalEntry {
  return {
    accountId: textOf(row, "account_id"),
    sequence: numberOf(row, "sequence"),
    atMs: numberOf(row, "at_ms"),
    kind: textOf(row, "kind") as EntryKind,
    balanceDeltaNanos: bigOf(row, "balance_delta_nanos"),
    heldDeltaNanos: bigOf(row, "held_delta_nanos"),
    actor: textOf(row, "actor"),
    requestId: textOrNullOf(row, "request_id"),
    reference: textOrNullOf(row, "reference"),
    receipt: textOrNullOf(row, "receipt"),
    note: textOrNullOf(row, "note"),
  };
}

/** Whether an entry is a period's grant, which the service pays, and not one that an operator has given. */
export function isPaidGrant({ actor, kind, reference }: JournalEntry): boolean {
  const isOfPeriod = reference?.startsWith(grantReferencePrefix) === true;
  return kind === "grant" && actor === "service" && isOfPeriod;
}

/** What stands before the first entry of every account. */
export const firstHead: Uint8Array = new Uint8Array(32);

const headBytes = firstHead.byteLength;

const newerKinds: ReadonlySet<EntryKind> = new Set(creditKinds);

/**
 * The text whose UTF-8 bytes are hashed: ten lines joined by line feeds, none at the end, and for the kinds of credit
 * twelve. Numbers are decimal without leading zeros, a missing request, reference or receipt is an empty line, a missing
 * note too; a note begins with `=`. The note is last, since it alone may contain line feeds. Fixed: another form gets
 * another first line.
 */
export function canonicalText(entry: EntryToHash): string {
  const { accountId, actor, kind } = entry;
  const note = entry.note === null ? "" : `=${entry.note}`;
  const isNewer = newerKinds.has(kind);
  const newer = isNewer ? `${entry.reference ?? ""}\n${entry.receipt ?? ""}\n` : "";
  return `tributary-entry-${isNewer ? "2" : "1"}\n${accountId}\n${String(entry.sequence)}\n${String(entry.atMs)}\n${kind}\n${entry.balanceDeltaNanos.toString()}\n${entry.heldDeltaNanos.toString()}\n${actor}\n${entry.requestId ?? ""}\n${newer}${note}`;
}

// `chainBytes` makes it larger when a note needs more; a text has at most three bytes a UTF-16 unit.
let scratch = Buffer.alloc(4_096);

/** The hash of an entry: SHA-256 of the 32 bytes of the hash before it, followed by its canonical bytes. */
export function chainHash(previous: Uint8Array, entry: EntryToHash): Uint8Array {
  return hash("sha256", chainBytes(toHex(previous), entry), "buffer");
}

/** `chainHash` in hexadecimal digits, in and out: verifying reads many entries, and bytes cost it more than text. */
export function chainHashHex(previousHex: string, entry: EntryToHash): string {
  return hash("sha256", chainBytes(previousHex, entry), "hex");
}

function chainBytes(previousHex: string, entry: EntryToHash): Buffer {
  const text = canonicalText(entry);
  const needed = headBytes + text.length * 3;
  if (needed > scratch.byteLength) scratch = Buffer.alloc(needed * 2);
  scratch.write(previousHex, 0, "hex");
  const written = scratch.write(text, headBytes, "utf8");
  return scratch.subarray(0, headBytes + written);
}

/** Bytes as the hexadecimal digits that heads are written in. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** The number and hash of an entry: a head that was kept elsewhere proves later what the entries up to it were. */
export interface JournalHead {
  readonly accountId: AccountId;
  readonly sequence: number;
  readonly hash: Uint8Array;
}

/** A head as receipts show it: `acct_...:17:` and 64 hexadecimal digits. */
export function formatHead(head: JournalHead): string {
  return `${head.accountId}:${String(head.sequence)}:${toHex(head.hash)}`;
}

/** A head as it was shown, or null for anything else. */
export function parseHead(text: string): JournalHead | null {
  const match = /^acct_([0-9A-Za-z]+):(\d{1,15}):([0-9a-f]{64})$/.exec(text);
  const [, account, sequence, digits] = match ?? [];
  if (account === undefined || sequence === undefined || digits === undefined) return null;
  return {
    accountId: `acct_${account}`,
    sequence: Number(sequence),
    hash: new Uint8Array(Buffer.from(digits, "hex")),
  };
}

/** What an account had after its entry `sequence`; the entries up to it may then be removed. */
export interface Checkpoint {
  readonly sequence: number;
  readonly hash: Uint8Array;
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  /** Credits minus takebacks. */
  readonly creditedNanos: CreditNanos;
}

/**
 * The note of the entry of kind `checkpoint` that every checkpoint writes into the chain: a checkpoint that was changed
 * afterwards contradicts it.
 */
export function checkpointNote(checkpoint: Checkpoint): string {
  const { balanceNanos, creditedNanos, hash: digest, heldNanos, sequence } = checkpoint;
  return `through ${String(sequence)} hash ${toHex(digest)} balance ${balanceNanos.toString()} held ${heldNanos.toString()} credited ${creditedNanos.toString()}`;
}
