/** Accounts, keys, reservations, journal and rate windows. Released: never edited, a change is a new number. */
export const accounts = `
-- Keyed by account first, so that a sharded server keeps all of an account in one place.
create table tributary.account (
  id text collate "C" primary key check (starts_with(id, 'acct_')),
  name text not null,
  status text not null check (status in ('active', 'disabled')),
  -- Integers of 1e-9 credit. The checks are the last line: no code path may overspend, whatever its bug.
  balance_nanos bigint not null check (balance_nanos >= 0),
  held_nanos bigint not null check (held_nanos between 0 and balance_nanos),
  running integer not null check (running >= 0 and (running > 0 or held_nanos = 0)),
  -- Sequence and hash of the account's last journal entry; 32 zero bytes before the first.
  entries bigint not null check (entries >= 0),
  head bytea not null default decode(repeat('00', 32), 'hex') check (length(head) = 32),
  created_at_ms bigint not null
) with (fillfactor = 50);

create table tributary.api_key (
  account_id text collate "C" not null references tributary.account (id),
  id text collate "C" not null check (starts_with(id, 'key_')),
  name text not null,
  -- SHA-256 of the whole key; the key itself is nowhere.
  secret_hash bytea not null check (length(secret_hash) = 32),
  created_at_ms bigint not null,
  revoked_at_ms bigint,
  primary key (account_id, id)
);
create index api_key_id on tributary.api_key (id);

-- One row a request that was admitted: while it runs the reservation, afterwards the receipt.
create table tributary.reservation (
  account_id text collate "C" not null references tributary.account (id),
  request_id text collate "C" not null,
  key_id text collate "C" not null,
  state text not null check (state in ('open', 'settled', 'expired')),
  format text not null,
  streamed boolean not null,
  input_bound bigint not null check (input_bound >= 0),
  allowance bigint not null check (allowance >= 1),
  input_nanos_per_million bigint not null check (input_nanos_per_million >= 0),
  output_nanos_per_million bigint not null check (output_nanos_per_million >= 0),
  reserved_nanos bigint not null check (reserved_nanos >= 0),
  charged_nanos bigint check (charged_nanos between 0 and reserved_nanos),
  outcome text,
  input_tokens bigint,
  cached_input_tokens bigint,
  output_tokens bigint,
  reasoning_tokens bigint,
  admitted_at_ms bigint not null,
  lease_until_ms bigint not null,
  resolved_at_ms bigint,
  first_output_ms bigint,
  total_ms bigint,
  -- The entry that reserved, the entry that resolved, and the hash of the newer of the two.
  reserved_sequence bigint not null,
  resolved_sequence bigint,
  head bytea not null check (length(head) = 32),
  primary key (account_id, request_id),
  check ((state = 'open') = (charged_nanos is null)),
  check ((state = 'open') = (outcome is null)),
  check ((state = 'open') = (resolved_at_ms is null)),
  check (state <> 'expired' or charged_nanos = 0)
);
create index reservation_request on tributary.reservation (request_id);
create index reservation_lease on tributary.reservation (account_id, lease_until_ms) where state = 'open';
-- No other index begins with the account: on a fresh server, which has no statistics yet, looking for one request of an
-- account would be done by it, through all of the account's requests.

-- Append-only: the deltas of an account add up to its balance and to what it holds. Each hash covers the one before it.
create table tributary.entry (
  account_id text collate "C" not null references tributary.account (id),
  sequence bigint not null check (sequence >= 1),
  at_ms bigint not null,
  kind text not null check (kind in ('credit', 'takeback', 'reserve', 'settle', 'expire', 'checkpoint')),
  balance_delta_nanos bigint not null,
  held_delta_nanos bigint not null,
  -- The id of the caller's key, 'operator' or 'service'.
  actor text collate "C" not null,
  request_id text collate "C",
  note text,
  hash bytea not null check (length(hash) = 32),
  primary key (account_id, sequence)
);

-- What an account had after its entry of that number; entries up to it may have been removed.
create table tributary.checkpoint (
  account_id text collate "C" primary key references tributary.account (id),
  sequence bigint not null check (sequence >= 1),
  hash bytea not null check (length(hash) = 32),
  balance_nanos bigint not null check (balance_nanos >= 0),
  held_nanos bigint not null check (held_nanos between 0 and balance_nanos),
  -- Credits minus takebacks.
  credited_nanos bigint not null,
  at_ms bigint not null
);

create function tributary.refuse_change() returns trigger language plpgsql as $body$
begin
  if tg_op = 'DELETE' then
    if exists (select 1 from tributary.checkpoint c where c.account_id = old.account_id and c.sequence >= old.sequence)
    then return old; end if;
  end if;
  raise exception 'journal entries are never changed, and never removed but behind a checkpoint';
end
$body$;

create trigger entry_is_never_changed before update or delete on tributary.entry
  for each row execute function tributary.refuse_change();
create trigger entry_is_never_truncated before truncate on tributary.entry
  for each statement execute function tributary.refuse_change();

-- Keys that seal reasoning; the last one seals, all of them unseal.
create table tributary.seal_key (
  sequence bigint generated always as identity primary key,
  id text not null unique,
  secret bytea not null check (length(secret) = 32),
  created_at_ms bigint not null
);

-- Requests of each key in its window, one row a ticket. Worth nothing after a minute: after a crash of the server they
-- are gone, and no commit waits for them.
create unlogged table tributary.rate_window (
  account_id text collate "C" not null,
  key_id text collate "C" not null,
  -- How many tickets there are, so that nobody counts them.
  held bigint not null check (held >= 0),
  newest_ms bigint not null,
  primary key (account_id, key_id)
) with (fillfactor = 50);

create unlogged table tributary.rate_ticket (
  account_id text collate "C" not null,
  key_id text collate "C" not null,
  at_ms bigint not null,
  id text collate "C" not null,
  primary key (account_id, key_id, at_ms, id)
);
`;
