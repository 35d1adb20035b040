import type { DatabaseSync } from "node:sqlite";
import { bigOf } from "../../row.ts";

/**
 * Entries of more kinds may be written. SQLite cannot change a check: what its documentation names for this is to write
 * the table's text anew, which reads and moves no row (https://www.sqlite.org/lang_altertable.html#otheralter).
 */
export function allowKindsOfCredit(database: DatabaseSync): void {
  const version = database.prepare("pragma main.schema_version");
  version.setReadBigInts(true);
  database.enableDefensive(false);
  database.exec("pragma writable_schema = on");
  database.exec(`
    update main.sqlite_schema set sql = replace(sql, '''expire'', ''checkpoint'')',
      '''expire'', ''checkpoint'', ''top_up'', ''grant'', ''refund'', ''correction'')')
    where type = 'table' and name = 'entry'`);
  database.exec(
    `pragma main.schema_version = ${String(bigOf(version.get() ?? {}, "schema_version") + 1n)}`,
  );
  database.exec("pragma writable_schema = off");
  database.enableDefensive(true);
}

/** References, refunds, and what operators note of accounts. Released: never edited, a change is a new number. */
export const references = `
-- The name that another system has for the account.
alter table account add column external_id text;
-- Pairs of strings, as a JSON object.
alter table account add column metadata_json text not null default '{}';
-- Goes up with each change of what operators set.
alter table account add column version integer not null default 1;
alter table api_key add column version integer not null default 1;
create unique index account_external_id on account (external_id) where external_id is not null;

-- Under which name another system knows the movement, and the request whose charge a refund gives back.
alter table entry add column reference text;
alter table entry add column receipt text;

-- What refunds have given back of the charge.
alter table reservation add column refunded_nanos integer not null default 0 check (refunded_nanos >= 0);

-- The entries with a reference or a receipt, once more: they outlive checkpoints.
create table kept_credit (
  account_id text not null references account (id),
  sequence integer not null check (sequence >= 1),
  at_ms integer not null,
  kind text not null check (kind in ('top_up', 'grant', 'refund', 'correction')),
  amount_nanos integer not null,
  actor text not null,
  note text,
  reference text,
  receipt text,
  -- What the account had after it.
  balance_nanos integer not null,
  held_nanos integer not null,
  hash blob not null check (length(hash) = 32),
  primary key (account_id, sequence),
  check (reference is not null or receipt is not null)
) strict, without rowid;
create unique index kept_credit_reference on kept_credit (account_id, reference) where reference is not null;
create index kept_credit_receipt on kept_credit (receipt) where receipt is not null;

create trigger kept_credit_is_never_changed before update on kept_credit
begin select raise(abort, 'credits that are kept are never changed'); end;

create trigger kept_credit_is_never_removed before delete on kept_credit
begin select raise(abort, 'credits that are kept are never removed'); end;
`;
