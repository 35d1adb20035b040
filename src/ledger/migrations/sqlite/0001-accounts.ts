/** Accounts, keys, reservations and the journal. Released: never edited, a change is a new number. */
export const accounts = `
create table account (
  id text primary key check (id glob 'acct_*'),
  name text not null,
  status text not null check (status in ('active', 'disabled')),
  -- Integers of 1e-9 credit. The checks are the last line: no code path may overspend, whatever its bug.
  balance_nanos integer not null check (balance_nanos >= 0),
  held_nanos integer not null check (held_nanos between 0 and balance_nanos),
  running integer not null check (running >= 0 and (running > 0 or held_nanos = 0)),
  -- Sequence of the account's last journal entry.
  entries integer not null check (entries >= 0),
  created_at_ms integer not null
) strict;

create table api_key (
  account_id text not null references account (id),
  id text not null unique check (id glob 'key_*'),
  name text not null,
  -- SHA-256 of the whole key; the key itself is nowhere.
  secret_hash blob not null check (length(secret_hash) = 32),
  created_at_ms integer not null,
  revoked_at_ms integer,
  primary key (account_id, id)
) strict;

-- One row a request that was admitted: while it runs the reservation, afterwards the receipt.
create table reservation (
  request_id text not null unique,
  account_id text not null references account (id),
  key_id text not null,
  state text not null check (state in ('open', 'settled', 'expired')),
  format text not null,
  streamed integer not null check (streamed in (0, 1)),
  input_bound integer not null check (input_bound >= 0),
  allowance integer not null check (allowance >= 1),
  input_nanos_per_million integer not null check (input_nanos_per_million >= 0),
  output_nanos_per_million integer not null check (output_nanos_per_million >= 0),
  reserved_nanos integer not null check (reserved_nanos >= 0),
  charged_nanos integer check (charged_nanos between 0 and reserved_nanos),
  outcome text,
  input_tokens integer,
  cached_input_tokens integer,
  output_tokens integer,
  reasoning_tokens integer,
  admitted_at_ms integer not null,
  lease_until_ms integer not null,
  resolved_at_ms integer,
  first_output_ms integer,
  total_ms integer,
  check ((state = 'open') = (charged_nanos is null)),
  check ((state = 'open') = (outcome is null)),
  check ((state = 'open') = (resolved_at_ms is null)),
  check (state <> 'expired' or charged_nanos = 0)
) strict;

create index reservation_lease on reservation (lease_until_ms) where state = 'open';
create index reservation_account on reservation (account_id, admitted_at_ms);

-- Append-only: the deltas of an account add up to its balance and to what it holds.
create table entry (
  account_id text not null references account (id),
  sequence integer not null check (sequence >= 1),
  at_ms integer not null,
  kind text not null check (kind in ('credit', 'takeback', 'reserve', 'settle', 'expire')),
  balance_delta_nanos integer not null,
  held_delta_nanos integer not null,
  request_id text,
  note text,
  primary key (account_id, sequence)
) strict, without rowid;

create trigger entry_is_never_changed before update on entry
begin select raise(abort, 'journal entries are never changed'); end;

create trigger entry_is_never_removed before delete on entry
begin select raise(abort, 'journal entries are never removed'); end;

-- Keys that seal reasoning; the last one seals, all of them unseal.
create table seal_key (
  sequence integer primary key,
  id text not null unique,
  secret blob not null check (length(secret) = 32),
  created_at_ms integer not null
) strict;
`;
