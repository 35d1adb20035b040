/** References, refunds, and what operators note of accounts. Released: never edited, a change is a new number. */
export const references = `
alter table tributary.account
  -- The name that another system has for the account.
  add column external_id text,
  -- Pairs of strings, as a JSON object.
  add column metadata_json text not null default '{}',
  -- Goes up with each change of what operators set.
  add column version bigint not null default 1;
alter table tributary.api_key add column version bigint not null default 1;
create unique index account_external_id on tributary.account (external_id) where external_id is not null;

-- What is there has kinds that both checks allow, so that no row is read for the new one.
alter table tributary.entry
  -- Under which name another system knows the movement, and the request whose charge a refund gives back.
  add column reference text,
  add column receipt text collate "C",
  drop constraint entry_kind_check,
  add constraint entry_kind_check check (kind in ('credit', 'takeback', 'reserve', 'settle', 'expire', 'checkpoint',
    'top_up', 'grant', 'refund', 'correction')) not valid;

-- What refunds have given back of the charge.
alter table tributary.reservation
  add column refunded_nanos bigint not null default 0,
  add constraint reservation_refunded_nanos_check check (refunded_nanos >= 0) not valid;

-- The entries with a reference or a receipt, once more: they outlive checkpoints.
create table tributary.kept_credit (
  account_id text collate "C" not null references tributary.account (id),
  sequence bigint not null check (sequence >= 1),
  at_ms bigint not null,
  kind text not null check (kind in ('top_up', 'grant', 'refund', 'correction')),
  amount_nanos bigint not null,
  actor text collate "C" not null,
  note text,
  reference text,
  receipt text collate "C",
  -- What the account had after it.
  balance_nanos bigint not null,
  held_nanos bigint not null,
  hash bytea not null check (length(hash) = 32),
  primary key (account_id, sequence),
  check (reference is not null or receipt is not null)
);
create unique index kept_credit_reference on tributary.kept_credit (account_id, reference) where reference is not null;
create index kept_credit_receipt on tributary.kept_credit (receipt) where receipt is not null;

create function tributary.refuse_kept_change() returns trigger language plpgsql as $body$
begin
  raise exception 'credits that are kept are never changed or removed';
end
$body$;

create trigger kept_credit_is_never_changed before update or delete on tributary.kept_credit
  for each row execute function tributary.refuse_kept_change();
create trigger kept_credit_is_never_truncated before truncate on tributary.kept_credit
  for each statement execute function tributary.refuse_kept_change();
`;
