import type { JournalEntry } from "../journal.ts";
import type { ReservationToVerify } from "../verify-entry.ts";
import {
  type AccountToVerify,
  type CheckpointToVerify,
  type JournalVerification,
  openJournalVerification,
} from "../verify-journal.ts";
import type { Database, Read, TextRow } from "./database.ts";
import type { PostgresOperations } from "../store-operations.ts";

/** Reads every account, entry and receipt of one snapshot, some thousand rows at a time. */
export function openVerify(database: Database): PostgresOperations["verify"] {
  return (order) =>
    database.snapshot(async (read) => {
      const verification = openJournalVerification(order);
      await readAccounts(read, verification);
      await readStrays(read, verification);
      return verification.finish();
    });
}

async function readAccounts(read: Read, verification: JournalVerification): Promise<void> {
  const open = await readOpenReservations(read);
  const checkpoints = await readCheckpoints(read);
  const entries = openEntries(read);
  const accounts = read(
    `select id, balance_nanos, held_nanos, running, entries, encode(head, 'hex') from tributary.account order by id`,
  );
  for await (const rows of accounts) {
    for (const row of rows) {
      const id = text(row, 0);
      // Both come in the order of the accounts' ids.
      await entries.each(
        (accountId) => accountId < id,
        ({ entry }) => verification.strayEntry(entry.accountId, entry.sequence),
      );
      verification.beginAccount({
        id,
        balanceNanos: big(row, 1),
        heldNanos: big(row, 2),
        running: number(row, 3),
        entries: number(row, 4),
        head: text(row, 5),
        open: open.get(id) ?? { count: 0, reservedNanos: 0n },
        checkpoint: checkpoints.get(id) ?? null,
      });
      await entries.each(
        (accountId) => accountId === id,
        ({ entry, hash, reservation }) => verification.entry(entry, hash, reservation),
      );
      verification.endAccount();
    }
  }
  await entries.each(
    () => true,
    ({ entry }) => verification.strayEntry(entry.accountId, entry.sequence),
  );
}

async function readOpenReservations(
  read: Read,
): Promise<ReadonlyMap<string, AccountToVerify["open"]>> {
  const open = new Map<string, AccountToVerify["open"]>();
  const groups = read(
    `select account_id, count(*), sum(reserved_nanos) from tributary.reservation where state = 'open' group by account_id`,
  );
  for await (const rows of groups)
    for (const row of rows)
      open.set(text(row, 0), { count: number(row, 1), reservedNanos: big(row, 2) });
  return open;
}

const reservationColumns = `r.account_id, r.key_id, r.state, r.input_nanos_per_million, r.output_nanos_per_million,
  r.reserved_nanos, r.charged_nanos, r.input_tokens, r.output_tokens, r.admitted_at_ms, r.resolved_at_ms,
  r.reserved_sequence, r.resolved_sequence, encode(r.head, 'hex')`;
const reservationWidth = 14;

async function readCheckpoints(read: Read): Promise<ReadonlyMap<string, CheckpointToVerify>> {
  const running = new Map<string, CheckpointToVerify["running"][number][]>();
  const requests = read(
    `select ${reservationColumns}, r.request_id from tributary.checkpoint c
     join tributary.reservation r on r.account_id = c.account_id and r.reserved_sequence <= c.sequence
       and (r.resolved_sequence is null or r.resolved_sequence > c.sequence)`,
  );
  for await (const rows of requests) {
    for (const row of rows) {
      const reservation = reservationOf(row);
      const one = { requestId: text(row, reservationWidth), reservation };
      const others = running.get(reservation.accountId);
      if (others === undefined) running.set(reservation.accountId, [one]);
      else others.push(one);
    }
  }
  const checkpoints = new Map<string, CheckpointToVerify>();
  const found = read(
    `select c.account_id, c.sequence, encode(c.hash, 'hex'), c.balance_nanos, c.held_nanos, c.credited_nanos,
       (select coalesce(sum(r.charged_nanos), 0) from tributary.reservation r
        where r.account_id = c.account_id and r.resolved_sequence <= c.sequence)
     from tributary.checkpoint c`,
  );
  for await (const rows of found) {
    for (const row of rows) {
      checkpoints.set(text(row, 0), {
        sequence: number(row, 1),
        hash: new Uint8Array(Buffer.from(text(row, 2), "hex")),
        balanceNanos: big(row, 3),
        heldNanos: big(row, 4),
        creditedNanos: big(row, 5),
        chargedNanos: big(row, 6),
        running: running.get(text(row, 0)) ?? [],
      });
    }
  }
  return checkpoints;
}

interface ReadEntry {
  readonly entry: JournalEntry;
  readonly hash: string;
  readonly reservation: ReservationToVerify | null;
}

interface Entries {
  /** Takes entries from the front as long as their account is wanted. */
  each(wanted: (accountId: string) => boolean, take: (entry: ReadEntry) => void): Promise<void>;
}

// A request's row is read once, where it begins.
function openEntries(read: Read): Entries {
  const pieces = read(
    `select ${reservationColumns}, e.account_id, e.sequence, e.at_ms, e.kind, e.balance_delta_nanos, e.held_delta_nanos,
       e.actor, e.request_id, e.note, encode(e.hash, 'hex')
     from tributary.entry e left join tributary.reservation r
       on e.kind = 'reserve' and r.account_id = e.account_id and r.request_id = e.request_id
     order by e.account_id, e.sequence`,
  );
  let rows: readonly TextRow[] = [];
  let at = 0;
  let done = false;
  return {
    async each(wanted, take) {
      for (;;) {
        for (; at < rows.length; at += 1) {
          const row = rows[at];
          if (row === undefined || !wanted(text(row, reservationWidth))) return;
          take(entryOf(row));
        }
        if (done) return;
        const next = await pieces.next();
        at = 0;
        done = next.done === true;
        rows = next.done === true ? [] : next.value;
      }
    },
  };
}

function entryOf(row: TextRow): ReadEntry {
  const first = reservationWidth;
  return {
    entry: {
      accountId: text(row, first),
      sequence: number(row, first + 1),
      atMs: number(row, first + 2),
      kind: text(row, first + 3) as JournalEntry["kind"],
      balanceDeltaNanos: big(row, first + 4),
      heldDeltaNanos: big(row, first + 5),
      actor: text(row, first + 6),
      requestId: row[first + 7] ?? null,
      note: row[first + 8] ?? null,
    },
    hash: text(row, first + 9),
    reservation: row[0] === null ? null : reservationOf(row),
  };
}

function reservationOf(row: TextRow): ReservationToVerify {
  return {
    accountId: text(row, 0),
    keyId: text(row, 1),
    state: text(row, 2) as ReservationToVerify["state"],
    prices: { inputNanosPerMillion: big(row, 3), outputNanosPerMillion: big(row, 4) },
    reservedNanos: big(row, 5),
    chargedNanos: row[6] === null ? null : big(row, 6),
    tokens: row[7] === null ? null : { input: number(row, 7), output: Number(row[8] ?? 0) },
    admittedAtMs: number(row, 9),
    resolvedAtMs: row[10] === null ? null : number(row, 10),
    reservedSequence: row[11] === null ? null : number(row, 11),
    resolvedSequence: row[12] === null ? null : number(row, 12),
    head: row[13] ?? null,
  };
}

/** Receipts whose entries are not there; those that a checkpoint stands for are checked by their sums. */
async function readStrays(read: Read, verification: JournalVerification): Promise<void> {
  const counts = read(
    `select count(*) filter (where coalesce(r.reserved_sequence, 0) > coalesce(c.sequence, -1)),
       count(*) filter (where r.state <> 'open' and coalesce(r.resolved_sequence, 0) > coalesce(c.sequence, -1))
     from tributary.reservation r left join tributary.checkpoint c on c.account_id = r.account_id`,
  );
  for await (const [row] of counts) {
    if (row === undefined) continue;
    if (verification.metAll({ reserved: number(row, 0), resolved: number(row, 1) })) return;
  }
  const strays = read(
    `select receipt.account_id, receipt.request_id, receipt.wanted from (
       select request_id, account_id, reserved_sequence as wanted from tributary.reservation
       union all
       select request_id, account_id, resolved_sequence from tributary.reservation where state <> 'open'
     ) as receipt
     where coalesce(wanted, 0) > coalesce(
         (select sequence from tributary.checkpoint c where c.account_id = receipt.account_id), -1)
       and not exists (select 1 from tributary.entry e where e.account_id = receipt.account_id
         and e.sequence = receipt.wanted and e.request_id = receipt.request_id)
     order by receipt.account_id, receipt.wanted`,
  );
  for await (const rows of strays)
    for (const row of rows)
      verification.strayReceipt(
        text(row, 0),
        text(row, 1),
        row[2] === null ? null : number(row, 2),
      );
}

function text(row: TextRow, at: number): string {
  const value = row[at];
  if (typeof value !== "string") throw new Error(`ledger: column ${String(at)} is missing`);
  return value;
}

function big(row: TextRow, at: number): bigint {
  return BigInt(text(row, at));
}

function number(row: TextRow, at: number): number {
  return Number(text(row, at));
}
