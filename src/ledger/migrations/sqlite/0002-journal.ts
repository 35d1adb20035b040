import type { DatabaseSync } from "node:sqlite";
import { chainHash, type EntryKind, firstHead } from "../../journal.ts";
import { bigOf, numberOf, textOf, textOrNullOf } from "../../row.ts";

/** The hash chain over the journal, its heads, and checkpoints. Released: never edited, a change is a new number. */
export const journal = `
-- Hash of the account's last entry; 32 zero bytes before the first.
alter table account add column head blob not null
  default x'0000000000000000000000000000000000000000000000000000000000000000' check (length(head) = 32);

-- The entry that reserved, the entry that resolved, and the hash of the newer of the two.
alter table reservation add column reserved_sequence integer;
alter table reservation add column resolved_sequence integer;
alter table reservation add column head blob check (length(head) = 32);

create table entry_chained (
  account_id text not null references account (id),
  sequence integer not null check (sequence >= 1),
  at_ms integer not null,
  kind text not null check (kind in ('credit', 'takeback', 'reserve', 'settle', 'expire', 'checkpoint')),
  balance_delta_nanos integer not null,
  held_delta_nanos integer not null,
  -- The id of the caller's key, 'operator' or 'service'.
  actor text not null,
  request_id text,
  note text,
  hash blob not null check (length(hash) = 32),
  primary key (account_id, sequence)
) strict, without rowid;
`;

/** What is there already gets its actor and its place in the chain, an entry at a time. */
export function chainOldEntries(database: DatabaseSync): void {
  const entries = database.prepare(
    `select entry.*, reservation.key_id from entry left join reservation on reservation.request_id = entry.request_id
     order by entry.account_id, entry.sequence`,
  );
  const insert = database.prepare(
    `insert into entry_chained (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
       request_id, note, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const reserved = database.prepare(
    "update reservation set reserved_sequence = ?, head = ? where request_id = ?",
  );
  const resolved = database.prepare(
    "update reservation set resolved_sequence = ?, head = ? where request_id = ?",
  );
  const advance = database.prepare("update account set head = ? where id = ?");
  let account = "";
  let head = firstHead;
  for (const row of entries.iterate()) {
    const accountId = textOf(row, "account_id");
    if (accountId !== account) head = firstHead;
    account = accountId;
    const entry = {
      accountId,
      sequence: numberOf(row, "sequence"),
      atMs: numberOf(row, "at_ms"),
      kind: textOf(row, "kind") as EntryKind,
      balanceDeltaNanos: bigOf(row, "balance_delta_nanos"),
      heldDeltaNanos: bigOf(row, "held_delta_nanos"),
      actor: actorOf(textOf(row, "kind"), textOrNullOf(row, "key_id")),
      requestId: textOrNullOf(row, "request_id"),
      note: textOrNullOf(row, "note"),
    };
    head = chainHash(head, entry);
    insert.run(
      accountId,
      entry.sequence,
      entry.atMs,
      entry.kind,
      entry.balanceDeltaNanos,
      entry.heldDeltaNanos,
      entry.actor,
      entry.requestId,
      entry.note,
      head,
    );
    advance.run(head, accountId);
    if (entry.requestId !== null)
      (entry.kind === "reserve" ? reserved : resolved).run(entry.sequence, head, entry.requestId);
  }
}

/** The chained entries take the place of the old ones; only what a checkpoint holds may go. */
export const replaceEntries = `
drop table entry;
alter table entry_chained rename to entry;

-- What an account had after its entry of that number; entries up to it may have been removed.
create table checkpoint (
  account_id text primary key references account (id),
  sequence integer not null check (sequence >= 1),
  hash blob not null check (length(hash) = 32),
  balance_nanos integer not null check (balance_nanos >= 0),
  held_nanos integer not null check (held_nanos between 0 and balance_nanos),
  -- Credits minus takebacks.
  credited_nanos integer not null,
  at_ms integer not null
) strict;

create trigger entry_is_never_changed before update on entry
begin select raise(abort, 'journal entries are never changed'); end;

create trigger entry_is_never_removed before delete on entry
when old.sequence > coalesce((select sequence from checkpoint where account_id = old.account_id), 0)
begin select raise(abort, 'journal entries are never removed'); end;
`;

function actorOf(kind: string, keyId: string | null): string {
  if (kind === "expire") return "service";
  return keyId ?? "operator";
}
