import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { JournalEntry } from "../journal.ts";
import type { StoreOperations } from "../store-operations.ts";
import { checkpointOf } from "../roll-up.ts";
import { bigOf, numberOf, numberOrNullOf, type Row, textOf } from "../row.ts";
import type { ReservationToVerify } from "../verify-entry.ts";
import {
  type AccountToVerify,
  type CheckpointToVerify,
  type JournalVerification,
  openJournalVerification,
} from "../verify-journal.ts";
import { getRow } from "./get-row.ts";

/** Reads every account, entry and receipt of one snapshot, a row at a time. */
export function openVerify(database: DatabaseSync): StoreOperations["verify"] {
  return (order) => {
    const verification = openJournalVerification(order);
    readAccounts(database, verification);
    readStrays(database, verification);
    return verification.finish();
  };
}

function readAccounts(database: DatabaseSync, verification: JournalVerification): void {
  const accounts = database.prepare(
    "select id, balance_nanos, held_nanos, running, entries, lower(hex(head)) as head from account order by id",
  );
  const open = readOpenReservations(database);
  const readCheckpoint = openCheckpointReader(database);
  const entries = readEntries(database);
  let next = entries.next();
  const stray = ({ entry }: ReadEntry): void =>
    verification.strayEntry(entry.accountId, entry.sequence);
  for (const row of accounts.iterate()) {
    const account = accountToVerify(row, open, readCheckpoint);
    // Both come in the order of the accounts' ids.
    for (; next.done !== true && next.value.entry.accountId < account.id; next = entries.next())
      stray(next.value);
    verification.beginAccount(account);
    for (; next.done !== true && next.value.entry.accountId === account.id; next = entries.next())
      verification.entry(next.value.entry, next.value.hash, next.value.reservation);
    verification.endAccount();
  }
  for (; next.done !== true; next = entries.next()) stray(next.value);
}

type OpenReservations = ReadonlyMap<string, AccountToVerify["open"]>;

function readOpenReservations(database: DatabaseSync): OpenReservations {
  const rows = database
    .prepare(
      `select account_id, count(*) as count, sum(reserved_nanos) as reserved from reservation indexed by reservation_lease
       where state = 'open' group by account_id`,
    )
    .all();
  return new Map(
    rows.map((row) => [
      textOf(row, "account_id"),
      { count: numberOf(row, "count"), reservedNanos: bigOf(row, "reserved") },
    ]),
  );
}

type CheckpointReader = (accountId: string) => CheckpointToVerify | null;

function openCheckpointReader(database: DatabaseSync): CheckpointReader {
  const find = database.prepare("select * from checkpoint where account_id = ?");
  const charged = database.prepare(
    `select coalesce(sum(charged_nanos), 0) as charged from reservation
     where account_id = ? and resolved_sequence <= ?`,
  );
  const running = readByPosition(
    database,
    `select ${reservationColumns}, request_id from reservation
     where account_id = ?1 and reserved_sequence <= ?2 and (resolved_sequence is null or resolved_sequence > ?2)`,
  );
  return (accountId) => {
    const row = getRow(find, accountId);
    if (row === null) return null;
    const checkpoint = checkpointOf(row);
    const sum = getRow(charged, accountId, checkpoint.sequence);
    return {
      ...checkpoint,
      chargedNanos: sum === null ? 0n : bigOf(sum, "charged"),
      running: (running(accountId, checkpoint.sequence) as readonly RunningRow[]).map((one) => ({
        requestId: one[14],
        reservation: reservationOf(accountId, one),
      })),
    };
  };
}

function accountToVerify(
  row: Row,
  open: OpenReservations,
  readCheckpoint: CheckpointReader,
): AccountToVerify {
  const id = textOf(row, "id");
  return {
    id,
    balanceNanos: bigOf(row, "balance_nanos"),
    heldNanos: bigOf(row, "held_nanos"),
    running: numberOf(row, "running"),
    entries: numberOf(row, "entries"),
    head: textOf(row, "head"),
    open: open.get(id) ?? { count: 0, reservedNanos: 0n },
    checkpoint: readCheckpoint(id),
  };
}

interface ReadEntry {
  readonly entry: JournalEntry;
  readonly hash: string;
  readonly reservation: ReservationToVerify | null;
}

/** An integer that may be too large for a number then comes as text. */
type Exact = number | string;

type ReservationRow = readonly [
  accountId: string | null,
  keyId: string,
  state: ReservationToVerify["state"],
  inputPrice: Exact,
  outputPrice: Exact,
  reserved: Exact,
  charged: Exact | null,
  inputTokens: number | null,
  outputTokens: number | null,
  admittedAtMs: number,
  resolvedAtMs: number | null,
  reservedSequence: number | null,
  resolvedSequence: number | null,
  head: string | null,
];

type RunningRow = readonly [...ReservationRow, requestId: string];

type EntryRow = readonly [
  ...reservation: ReservationRow,
  accountId: string,
  sequence: Exact,
  atMs: number,
  kind: JournalEntry["kind"],
  balanceDelta: Exact,
  heldDelta: Exact,
  actor: string,
  requestId: string | null,
  note: string | null,
  hash: string,
];

const reservationNumbers = [
  "input_tokens",
  "output_tokens",
  "admitted_at_ms",
  "resolved_at_ms",
  "reserved_sequence",
  "resolved_sequence",
];
const reservationColumns = `reservation.account_id, key_id, state, ${exact("input_nanos_per_million")},
  ${exact("output_nanos_per_million")}, ${exact("reserved_nanos")}, ${exact("charged_nanos")},
  ${reservationNumbers.map(near).join(", ")}, lower(hex(head))`;

/** A number beyond what JavaScript counts with is wrong in these columns, and stays wrong when it is cut. */
function near(column: string): string {
  return `min(${column}, 9007199254740991)`;
}

function exact(column: string): string {
  return `iif(${column} between -9007199254740991 and 9007199254740991, ${column}, cast(${column} as text))`;
}

// A ledger has many entries, and most of the time goes into values that cross from SQLite: numbers and text are a third
// of the cost of bigints and bytes, positions are cheaper than names and pages than single rows, and a request's row is
// read once, where it begins.
const pageEntries = 500;

function* readEntries(database: DatabaseSync): Generator<ReadEntry, undefined> {
  const read = readByPosition(
    database,
    `select ${reservationColumns}, entry.account_id, ${exact("entry.sequence")}, ${near("at_ms")}, kind, ${exact("balance_delta_nanos")},
       ${exact("held_delta_nanos")}, actor, entry.request_id, note, lower(hex(hash))
     from entry left join reservation on kind = 'reserve' and reservation.request_id = entry.request_id
     where (entry.account_id, entry.sequence) > (?, ?) order by entry.account_id, entry.sequence
     limit ${String(pageEntries)}`,
  );
  let from: readonly [accountId: string, sequence: number | bigint] = ["", 0];
  for (;;) {
    const page = read(...from) as readonly EntryRow[];
    for (const row of page) yield entryOf(row);
    const last = page.at(-1);
    if (last === undefined || page.length < pageEntries) return;
    from = [last[14], typeof last[15] === "string" ? BigInt(last[15]) : last[15]];
  }
}

function entryOf(row: EntryRow): ReadEntry {
  return {
    entry: {
      accountId: row[14],
      sequence: Number(row[15]),
      atMs: row[16],
      kind: row[17],
      balanceDeltaNanos: BigInt(row[18]),
      heldDeltaNanos: BigInt(row[19]),
      actor: row[20],
      requestId: row[21],
      note: row[22],
    },
    hash: row[23],
    reservation: row[0] === null ? null : reservationOf(row[0], row),
  };
}

function reservationOf(
  accountId: string,
  row: ReservationRow | EntryRow | RunningRow,
): ReservationToVerify {
  return {
    accountId,
    keyId: row[1],
    state: row[2],
    prices: { inputNanosPerMillion: BigInt(row[3]), outputNanosPerMillion: BigInt(row[4]) },
    reservedNanos: BigInt(row[5]),
    chargedNanos: row[6] === null ? null : BigInt(row[6]),
    tokens: row[7] === null ? null : { input: row[7], output: row[8] ?? 0 },
    admittedAtMs: row[9],
    resolvedAtMs: row[10],
    reservedSequence: row[11],
    resolvedSequence: row[12],
    head: row[13],
  };
}

/** Each row is what the list of columns says; the types of the driver know only rows by name. */
function readByPosition(
  database: DatabaseSync,
  sql: string,
): (...values: readonly SQLInputValue[]) => unknown {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  statement.setReadBigInts(false);
  return (...values) => statement.all(...values);
}

/** Receipts whose entries are not there; those that a checkpoint stands for are checked by their sums. */
function readStrays(database: DatabaseSync, verification: JournalVerification): void {
  const counts = getRow(
    database.prepare(
      `select coalesce(sum(coalesce(reserved_sequence, 0) > coalesce(checkpoint.sequence, -1)), 0) as reserved,
         coalesce(sum(state <> 'open' and coalesce(resolved_sequence, 0) > coalesce(checkpoint.sequence, -1)), 0) as resolved
       from reservation left join checkpoint on checkpoint.account_id = reservation.account_id`,
    ),
  );
  if (counts === null) return;
  const receipts = {
    reserved: numberOf(counts, "reserved"),
    resolved: numberOf(counts, "resolved"),
  };
  if (verification.metAll(receipts)) return;
  const strays = database.prepare(
    `select request_id, account_id, wanted from (
       select request_id, account_id, reserved_sequence as wanted from reservation
       union all
       select request_id, account_id, resolved_sequence from reservation where state <> 'open'
     ) as receipt
     where coalesce(wanted, 0) > coalesce((select sequence from checkpoint where account_id = receipt.account_id), -1)
       and not exists (select 1 from entry where entry.account_id = receipt.account_id
         and entry.sequence = wanted and entry.request_id = receipt.request_id)`,
  );
  for (const row of strays.iterate())
    verification.strayReceipt(
      textOf(row, "account_id"),
      textOf(row, "request_id"),
      numberOrNullOf(row, "wanted"),
    );
}
