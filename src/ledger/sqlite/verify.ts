import type { DatabaseSync } from "node:sqlite";
import type { JournalEntry } from "../journal.ts";
import type { StoreOperations } from "../operations.ts";
import { bigOf, bytesOf, numberOf, numberOrNullOf, type Row, textOf } from "../row.ts";
import type { ReservationToVerify } from "../verify-entry.ts";
import {
  type AccountToVerify,
  type CheckpointToVerify,
  type JournalVerification,
  openJournalVerification,
} from "../verify-journal.ts";
import { checkpointOf } from "./checkpoint.ts";
import { getRow } from "./get-row.ts";

/** Reads every account, entry and receipt of one snapshot, a row at a time. */
export function openVerify(database: DatabaseSync): StoreOperations["verify"] {
  return (order) => {
    const verification = openJournalVerification(order.against);
    readAccounts(database, verification);
    readStrays(database, verification);
    return verification.finish();
  };
}

function readAccounts(database: DatabaseSync, verification: JournalVerification): void {
  const accounts = database.prepare(
    "select id, balance_nanos, held_nanos, running, entries, head from account order by id",
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
      `select account_id, count(*) as count, sum(reserved_nanos) as reserved from reservation
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
  const running = database.prepare(
    `select request_id, reserved_nanos from reservation
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
      running: running.all(accountId, checkpoint.sequence).map((one) => ({
        requestId: textOf(one, "request_id"),
        reservedNanos: bigOf(one, "reserved_nanos"),
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
    head: bytesOf(row, "head"),
    open: open.get(id) ?? { count: 0, reservedNanos: 0n },
    checkpoint: readCheckpoint(id),
  };
}

interface ReadEntry {
  readonly entry: JournalEntry;
  readonly hash: Uint8Array;
  readonly reservation: ReservationToVerify | null;
}

// By position, since a ledger has many entries: names cost a third of the time.
type EntryRow = readonly [
  accountId: string,
  sequence: bigint,
  atMs: bigint,
  kind: JournalEntry["kind"],
  balanceDelta: bigint,
  heldDelta: bigint,
  actor: string,
  requestId: string | null,
  note: string | null,
  hash: Uint8Array,
  reservationAccountId: string | null,
  keyId: string,
  state: ReservationToVerify["state"],
  inputPrice: bigint,
  outputPrice: bigint,
  reserved: bigint,
  charged: bigint | null,
  inputTokens: bigint | null,
  outputTokens: bigint | null,
  admittedAtMs: bigint,
  resolvedAtMs: bigint | null,
  reservedSequence: bigint | null,
  resolvedSequence: bigint | null,
  head: Uint8Array | null,
];

function* readEntries(database: DatabaseSync): Generator<ReadEntry, undefined> {
  const statement = database.prepare(
    `select entry.account_id, entry.sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
       entry.request_id, note, hash, reservation.account_id, key_id, state, input_nanos_per_million,
       output_nanos_per_million, reserved_nanos, charged_nanos, input_tokens, output_tokens, admitted_at_ms,
       resolved_at_ms, reserved_sequence, resolved_sequence, head
     from entry left join reservation on reservation.request_id = entry.request_id
     order by entry.account_id, entry.sequence`,
  );
  statement.setReturnArrays(true);
  // With arrays each row is what the list of columns says; the types of the driver know only the other form.
  for (const row of statement.iterate() as unknown as Iterable<EntryRow>) yield entryOf(row);
}

function entryOf(row: EntryRow): ReadEntry {
  const entry = {
    accountId: row[0],
    sequence: Number(row[1]),
    atMs: Number(row[2]),
    kind: row[3],
    balanceDeltaNanos: row[4],
    heldDeltaNanos: row[5],
    actor: row[6],
    requestId: row[7],
    note: row[8],
  };
  return { entry, hash: row[9], reservation: reservationOf(row) };
}

function reservationOf(row: EntryRow): ReservationToVerify | null {
  const accountId = row[10];
  if (accountId === null) return null;
  return {
    accountId,
    keyId: row[11],
    state: row[12],
    prices: { inputNanosPerMillion: row[13], outputNanosPerMillion: row[14] },
    reservedNanos: row[15],
    chargedNanos: row[16],
    tokens: row[17] === null ? null : { input: Number(row[17]), output: Number(row[18] ?? 0n) },
    admittedAtMs: Number(row[19]),
    resolvedAtMs: row[20] === null ? null : Number(row[20]),
    reservedSequence: row[21] === null ? null : Number(row[21]),
    resolvedSequence: row[22] === null ? null : Number(row[22]),
    head: row[23],
  };
}

/** Receipts whose entries are not there; those that a checkpoint stands for are checked by their sums. */
function readStrays(database: DatabaseSync, verification: JournalVerification): void {
  const statement = database.prepare(
    `select request_id, account_id, wanted from (
       select request_id, account_id, reserved_sequence as wanted from reservation
       union all
       select request_id, account_id, resolved_sequence from reservation where state <> 'open'
     ) as receipt
     where coalesce(wanted, 0) > coalesce((select sequence from checkpoint where account_id = receipt.account_id), -1)
       and not exists (select 1 from entry where entry.account_id = receipt.account_id
         and entry.sequence = wanted and entry.request_id = receipt.request_id)`,
  );
  for (const row of statement.iterate())
    verification.strayReceipt(
      textOf(row, "account_id"),
      textOf(row, "request_id"),
      numberOrNullOf(row, "wanted"),
    );
}
