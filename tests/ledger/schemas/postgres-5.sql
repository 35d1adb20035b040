-- The database as version 5 of the schema left it: what its migrations did, in their own words. Never edited.

create schema tributary;
create table tributary.migration (
  number integer primary key,
  name text not null,
  applied_at timestamptz not null default now()
);

-- 0001-accounts
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

insert into tributary.migration (number, name) values (1, '0001-accounts');

-- 0002-operations
-- Milliseconds since 1970, now and not at the begin of the transaction, which may have waited for a lock.
create function tributary.now_ms() returns bigint language sql volatile as $body$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$body$;

-- What tokens cost, rounded up; as in admission/price.ts.
create function tributary.cost_nanos(
  _input_tokens bigint, _output_tokens bigint, _input_price bigint, _output_price bigint
) returns numeric language sql immutable as $body$
  select div(_input_tokens::numeric * _input_price + _output_tokens::numeric * _output_price + 999999, 1000000)
$body$;

-- The only place that changes a balance: from the row itself, with the journal entry beside it. The bytes that are
-- hashed are those of ledger/journal.ts.
create function tributary.move(
  _account text, _kind text, _balance_delta bigint, _held_delta bigint, _running_delta integer, _actor text,
  _request text, _note text, _now bigint, out written_sequence bigint, out written_hash bytea
) language plpgsql as $body$
begin
  -- Credit that moved survives a power cut, whatever the session was told.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  update tributary.account a set balance_nanos = a.balance_nanos + _balance_delta,
      held_nanos = a.held_nanos + _held_delta, running = a.running + _running_delta, entries = a.entries + 1,
      head = sha256(a.head || convert_to(concat_ws(chr(10), 'tributary-entry-1', _account, a.entries + 1, _now, _kind,
        _balance_delta, _held_delta, _actor, coalesce(_request, ''), coalesce('=' || _note, '')), 'UTF8'))
    where a.id = _account returning a.entries, a.head into strict written_sequence, written_hash;
  insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
      request_id, note, hash)
    values (_account, written_sequence, _now, _kind, _balance_delta, _held_delta, _actor, _request, _note, written_hash);
end
$body$;

-- Key, account and a ticket in the key's window. The hashes are compared behind a nonce, so that the time it takes
-- tells nothing about them; an unknown key takes as long.
create function tributary.authorize(
  _account text, _key text, _hash bytea, _nonce bytea, _ticket text, _limit bigint, _window_ms bigint, _at_ms bigint,
  out verdict text, out live bigint, out newest bigint, out fits_at bigint, out now bigint
) language plpgsql as $body$
declare
  _found record;
  _gone bigint;
begin
  now := coalesce(_at_ms, tributary.now_ms());
  select k.secret_hash, k.revoked_at_ms, a.status into _found
    from tributary.api_key k join tributary.account a on a.id = k.account_id
    where k.account_id = _account and k.id = _key;
  if sha256(coalesce(_found.secret_hash, decode(repeat('00', 32), 'hex')) || _nonce) <> sha256(_hash || _nonce)
      or _found.secret_hash is null then
    verdict := 'unknown'; return;
  elsif _found.revoked_at_ms is not null then
    verdict := 'revoked'; return;
  elsif _found.status <> 'active' then
    verdict := 'disabled'; return;
  end if;
  if _ticket is null then
    select count(*), max(t.at_ms) into live, newest from tributary.rate_ticket t
      where t.account_id = _account and t.key_id = _key and t.at_ms > now - _window_ms and t.at_ms <= now + _window_ms;
    verdict := 'known'; return;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  loop
    select w.held into live from tributary.rate_window w
      where w.account_id = _account and w.key_id = _key for no key update;
    exit when found;
    insert into tributary.rate_window (account_id, key_id, held, newest_ms) values (_account, _key, 0, now)
      on conflict do nothing;
  end loop;
  now := coalesce(_at_ms, tributary.now_ms());
  delete from tributary.rate_ticket t
    where t.account_id = _account and t.key_id = _key and t.at_ms <= now - _window_ms;
  get diagnostics _gone = row_count;
  live := live - _gone;
  -- Tickets from more than a window ahead were taken before the clock was set back: they would block for as long.
  delete from tributary.rate_ticket t
    where t.account_id = _account and t.key_id = _key and t.at_ms > now + _window_ms;
  get diagnostics _gone = row_count;
  live := live - _gone;
  select max(t.at_ms) into newest from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key;
  if live >= _limit then
    -- Usually the oldest; further on when the operator has lowered the limit.
    select t.at_ms into fits_at from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key
      order by t.at_ms offset live - _limit limit 1;
    fits_at := coalesce(fits_at, now) + _window_ms;
    verdict := 'rate';
  else
    insert into tributary.rate_ticket (account_id, key_id, at_ms, id) values (_account, _key, now, _ticket);
    live := live + 1;
    newest := greatest(newest, now);
    verdict := 'known';
  end if;
  update tributary.rate_window w set held = live, newest_ms = coalesce(newest, now)
    where w.account_id = _account and w.key_id = _key;
end
$body$;

-- Gives a ticket back; false when it is not there any more.
create function tributary.give_ticket_back(_account text, _key text, _ticket_at_ms bigint, _ticket text)
returns boolean language plpgsql as $body$
begin
  perform 1 from tributary.rate_window w where w.account_id = _account and w.key_id = _key for no key update;
  delete from tributary.rate_ticket t
    where t.account_id = _account and t.key_id = _key and t.at_ms = _ticket_at_ms and t.id = _ticket;
  if not found then return false; end if;
  update tributary.rate_window w set held = w.held - 1 where w.account_id = _account and w.key_id = _key;
  return true;
end
$body$;

-- Key and account again, concurrency, allowance and reservation. The allowance is that of admission/output-allowance.ts:
-- _cap is what it may be at most; _explicit when the client named it, which is then granted whole or not at all.
create function tributary.admit(
  _account text, _key text, _request text, _ticket_at_ms bigint, _ticket text, _repeated boolean,
  _input_bound bigint, _cap bigint, _explicit boolean, _most bigint, _format text, _streamed boolean,
  _input_price bigint, _output_price bigint, _concurrency integer, _lease_ms bigint, _at_ms bigint,
  out verdict text, out granted bigint, out nanos numeric, out input_price bigint, out output_price bigint,
  out balance bigint, out held bigint, out affordable bigint
) language plpgsql as $body$
declare
  _now bigint;
  _row record;
  _revoked_at_ms bigint;
  _available numeric;
  _sequence bigint;
  _hash bytea;
  _input numeric := _input_bound::numeric * _input_price;
begin
  select a.status, a.balance_nanos, a.held_nanos, a.running into _row
    from tributary.account a where a.id = _account for no key update;
  if not found then verdict := 'unknown'; return; end if;
  balance := _row.balance_nanos;
  held := _row.held_nanos;
  select r.state, r.allowance, r.reserved_nanos, r.input_nanos_per_million, r.output_nanos_per_million
    into verdict, granted, nanos, input_price, output_price
    from tributary.reservation r where r.account_id = _account and r.request_id = _request;
  if found then
    verdict := case verdict when 'open' then 'admitted' else 'ended' end; return;
  end if;
  select k.revoked_at_ms into _revoked_at_ms from tributary.api_key k where k.account_id = _account and k.id = _key;
  if not found then verdict := 'unknown'; return; end if;
  if _revoked_at_ms is not null then verdict := 'revoked'; return; end if;
  if _row.status <> 'active' then verdict := 'disabled'; return; end if;
  if _row.running >= _concurrency then
    perform set_config('synchronous_commit', 'off', true);
    perform tributary.give_ticket_back(_account, _key, _ticket_at_ms, _ticket);
    verdict := 'concurrent'; return;
  end if;
  -- Asked again because the first answer was lost: a ticket that has gone tells that the answer was no.
  if _repeated and _ticket is not null and not exists (select 1 from tributary.rate_ticket t
      where t.account_id = _account and t.key_id = _key and t.at_ms = _ticket_at_ms and t.id = _ticket) then
    verdict := 'concurrent'; return;
  end if;
  _available := balance - held;
  affordable := case
    when div(_input + 999999, 1000000) > _available then 0
    when _output_price = 0 then _most
    else least(div(_available * 1000000 - _input, _output_price), _most) end;
  granted := case when _explicit then _cap else least(_cap, affordable) end;
  nanos := tributary.cost_nanos(_input_bound, greatest(granted, 1), _input_price, _output_price);
  if granted < 1 or nanos > _available then
    verdict := 'credit'; return;
  end if;
  _now := coalesce(_at_ms, tributary.now_ms());
  select m.written_sequence, m.written_hash into _sequence, _hash
    from tributary.move(_account, 'reserve', 0, nanos::bigint, 1, _key, _request, null, _now) m;
  insert into tributary.reservation (account_id, request_id, key_id, state, format, streamed, input_bound, allowance,
      input_nanos_per_million, output_nanos_per_million, reserved_nanos, admitted_at_ms, lease_until_ms,
      reserved_sequence, head)
    values (_account, _request, _key, 'open', _format, _streamed, _input_bound, granted,
      _input_price, _output_price, nanos, _now, _now + _lease_ms, _sequence, _hash);
  verdict := 'admitted';
  input_price := _input_price;
  output_price := _output_price;
end
$body$;

-- Resolves a reservation once; _input_tokens null: nothing is charged.
create function tributary.settle(
  _account text, _request text, _outcome text, _input_tokens bigint, _cached_input_tokens bigint, _output_tokens bigint,
  _reasoning_tokens bigint, _first_output_ms bigint, _total_ms bigint, _at_ms bigint,
  out charged bigint, out applied boolean
) language plpgsql as $body$
declare
  _now bigint;
  _row record;
  _sequence bigint;
  _hash bytea;
begin
  perform 1 from tributary.account a where a.id = _account for no key update;
  _now := coalesce(_at_ms, tributary.now_ms());
  select r.key_id, r.state, r.reserved_nanos, r.charged_nanos, r.input_nanos_per_million, r.output_nanos_per_million into _row
    from tributary.reservation r where r.account_id = _account and r.request_id = _request;
  applied := coalesce(_row.state = 'open', false);
  -- Never admitted: nothing is held, nothing is owed. Resolved before: as it was then.
  if not applied then charged := coalesce(_row.charged_nanos, 0); return; end if;
  charged := case when _input_tokens is null then 0 else least(_row.reserved_nanos, tributary.cost_nanos(
    _input_tokens, _output_tokens, _row.input_nanos_per_million, _row.output_nanos_per_million)) end;
  select m.written_sequence, m.written_hash into _sequence, _hash
    from tributary.move(_account, 'settle', -charged, -_row.reserved_nanos, -1, _row.key_id, _request, null, _now) m;
  update tributary.reservation r set state = 'settled', charged_nanos = charged, outcome = _outcome,
      input_tokens = _input_tokens, cached_input_tokens = _cached_input_tokens, output_tokens = _output_tokens,
      reasoning_tokens = _reasoning_tokens, resolved_at_ms = _now, first_output_ms = _first_output_ms,
      total_ms = _total_ms, resolved_sequence = _sequence, head = _hash
    where r.account_id = _account and r.request_id = _request;
end
$body$;

-- Gives back what dead processes held of one account. One that is being renewed at this moment is left alone.
create function tributary.expire(_account text, _at_ms bigint) returns integer language plpgsql as $body$
declare
  _now bigint;
  _row record;
  _sequence bigint;
  _hash bytea;
  _count integer := 0;
begin
  perform 1 from tributary.account a where a.id = _account for no key update;
  _now := coalesce(_at_ms, tributary.now_ms());
  for _row in select r.request_id, r.reserved_nanos from tributary.reservation r
      where r.account_id = _account and r.state = 'open' and r.lease_until_ms <= _now
      order by r.lease_until_ms, r.request_id for update skip locked
  loop
    select m.written_sequence, m.written_hash into _sequence, _hash
      from tributary.move(_account, 'expire', 0, -_row.reserved_nanos, -1, 'service', _row.request_id, null, _now) m;
    update tributary.reservation r set state = 'expired', charged_nanos = 0, outcome = 'lease-lost',
        resolved_at_ms = _now, resolved_sequence = _sequence, head = _hash
      where r.account_id = _account and r.request_id = _row.request_id;
    _count := _count + 1;
  end loop;
  return _count;
end
$body$;

-- Forgets windows in which nothing has happened for longer than they last.
create function tributary.sweep_rate(_window_ms bigint, _most integer, _at_ms bigint)
returns void language plpgsql as $body$
declare
  _row record;
begin
  perform set_config('synchronous_commit', 'off', true);
  for _row in select w.account_id, w.key_id from tributary.rate_window w
      where w.newest_ms <= coalesce(_at_ms, tributary.now_ms()) - _window_ms limit _most for update skip locked
  loop
    delete from tributary.rate_ticket t where t.account_id = _row.account_id and t.key_id = _row.key_id;
    delete from tributary.rate_window w where w.account_id = _row.account_id and w.key_id = _row.key_id;
  end loop;
end
$body$;

insert into tributary.migration (number, name) values (2, '0002-operations');

-- 0003-authorize-with-credit
-- As before, then: a balance below _least pays for no request, which its ticket counts all the same.
create function tributary.authorize(
  _account text, _key text, _hash bytea, _nonce bytea, _ticket text, _limit bigint, _window_ms bigint, _at_ms bigint,
  _least bigint,
  out verdict text, out live bigint, out newest bigint, out fits_at bigint, out now bigint,
  out balance bigint, out held bigint
) language plpgsql as $body$
begin
  select a.verdict, a.live, a.newest, a.fits_at, a.now into verdict, live, newest, fits_at, now
    from tributary.authorize(_account, _key, _hash, _nonce, _ticket, _limit, _window_ms, _at_ms) a;
  if verdict = 'known' and _least > 0 then
    select a.balance_nanos, a.held_nanos into balance, held from tributary.account a where a.id = _account;
    if balance < _least then verdict := 'credit'; end if;
  end if;
end
$body$;

insert into tributary.migration (number, name) values (3, '0003-authorize-with-credit');

-- 0004-resolved
-- A look-up of one request of an account cannot use it, as it leaves out what is open.
create index reservation_resolved on tributary.reservation (account_id, resolved_at_ms) where state <> 'open';

insert into tributary.migration (number, name) values (4, '0004-resolved');

-- 0005-owners
-- The process that reserved; null: it was one that did not say so.
alter table tributary.reservation add column owner text collate "C";
-- How far each renewal reaches: no process that lives has a lease that ends later than that from now.
alter table tributary.reservation add column lease_ms bigint check (lease_ms > 0);

-- Processes that say that they live: each keeps a lock of its session with its number. Not logged: after a crash of the
-- server, and on a standby that has taken over, nothing is known, and leases alone count.
create unlogged table tributary.process (
  id text collate "C" primary key,
  number integer not null check (number >= 0),
  -- Of the server whose session the lock is of: a restart ends all sessions, which tells nothing about processes.
  server_started timestamptz not null,
  -- Since when others have missed the lock; null: it is held.
  missed_ms bigint
);

-- Whether the session of a process is there. The first number of the lock is "TRIP".
create function tributary.is_heard(_number integer) returns boolean language sql volatile as $body$
  select exists (select 1 from pg_catalog.pg_locks l where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
    and l.classid = 1414678864::oid and l.objid = _number::oid
    and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))
$body$;

-- A process (null: a command) says that it lives, and looks for others that do not. known is false when others had
-- taken it for dead; dead tells whether there is anybody to give back for.
create function tributary.look(
  _process text, _number integer, _grace_ms bigint, _at_ms bigint, out known boolean, out dead boolean
) language plpgsql as $body$
declare
  _now bigint := coalesce(_at_ms, tributary.now_ms());
  _started timestamptz := pg_postmaster_start_time();
begin
  known := _process is null or exists (select 1 from tributary.process p
    where p.id = _process and p.missed_ms is null and p.server_started = _started and p.number = _number);
  if not known then
    insert into tributary.process (id, number, server_started) values (_process, _number, _started)
      on conflict (id) do update set number = _number, server_started = _started, missed_ms = null;
  end if;
  -- Most looks change nothing.
  update tributary.process p set missed_ms = case when tributary.is_heard(p.number) then null else _now end
    where p.id is distinct from _process and p.server_started = _started
      and ((p.missed_ms is null or p.missed_ms > _now) <> tributary.is_heard(p.number));
  dead := exists (select 1 from tributary.process p
    where p.server_started = _started and p.missed_ms <= _now - _grace_ms);
  -- Long after, when nothing is left to give back for them.
  delete from tributary.process p where (p.missed_ms <= _now - 3600000 or p.server_started <> _started)
    and not tributary.is_heard(p.number)
    and not exists (select 1 from tributary.reservation r where r.state = 'open' and r.owner = p.id);
end
$body$;

-- Whether an owner is dead for sure.
create function tributary.is_dead(_owner text, _grace_ms bigint, _now bigint) returns boolean
language sql volatile as $body$
  select exists (select 1 from tributary.process p where p.id = _owner and p.missed_ms <= _now - _grace_ms
    and p.server_started = pg_postmaster_start_time() and not tributary.is_heard(p.number))
$body$;

-- Whether a reservation is to be given back: because its owner is dead, or (_dead false) because its lease has ended, or
-- was made by a clock that was ahead, by a process that does not live any more.
create function tributary.is_due(
  _lease_until_ms bigint, _its_lease_ms bigint, _owner text, _dead boolean, _grace_ms bigint, _lease_ms bigint, _now bigint
) returns boolean language sql volatile as $body$
  select case when _dead then tributary.is_dead(_owner, _grace_ms, _now)
    else _lease_until_ms <= _now or (_lease_until_ms > _now + 2 * coalesce(_its_lease_ms, _lease_ms)
      and not exists (select 1 from tributary.process p where p.id = _owner and tributary.is_heard(p.number))) end
$body$;

-- Gives back what is due of one account. A reservation that is being renewed at this moment is left alone.
create function tributary.give_back(
  _account text, _dead boolean, _grace_ms bigint, _lease_ms bigint, _at_ms bigint
) returns integer language plpgsql as $body$
declare
  _now bigint;
  _row record;
  _sequence bigint;
  _hash bytea;
  _count integer := 0;
begin
  perform 1 from tributary.account a where a.id = _account for no key update;
  _now := coalesce(_at_ms, tributary.now_ms());
  for _row in select r.request_id, r.reserved_nanos from tributary.reservation r
      where r.account_id = _account and r.state = 'open'
        and tributary.is_due(r.lease_until_ms, r.lease_ms, r.owner, _dead, _grace_ms, _lease_ms, _now)
      order by r.lease_until_ms, r.request_id for update skip locked
  loop
    select m.written_sequence, m.written_hash into _sequence, _hash
      from tributary.move(_account, 'expire', 0, -_row.reserved_nanos, -1, 'service', _row.request_id, null, _now) m;
    update tributary.reservation r set state = 'expired', charged_nanos = 0, outcome = 'lease-lost',
        resolved_at_ms = _now, resolved_sequence = _sequence, head = _hash
      where r.account_id = _account and r.request_id = _row.request_id;
    _count := _count + 1;
  end loop;
  return _count;
end
$body$;

-- As in 0002, with the process that reserves, and with how long at least no slot can be free.
-- Key and account again, concurrency, allowance and reservation. The allowance is that of admission/output-allowance.ts:
-- _cap is what it may be at most; _explicit when the client named it, which is then granted whole or not at all.
create function tributary.admit(
  _account text, _key text, _request text, _ticket_at_ms bigint, _ticket text, _repeated boolean,
  _input_bound bigint, _cap bigint, _explicit boolean, _most bigint, _format text, _streamed boolean,
  _input_price bigint, _output_price bigint, _concurrency integer, _lease_ms bigint, _owner text, _at_ms bigint,
  out verdict text, out granted bigint, out nanos numeric, out input_price bigint, out output_price bigint,
  out balance bigint, out held bigint, out affordable bigint, out free_in_ms bigint
) language plpgsql as $body$
declare
  _now bigint;
  _row record;
  _revoked_at_ms bigint;
  _available numeric;
  _sequence bigint;
  _hash bytea;
  _input numeric := _input_bound::numeric * _input_price;
begin
  select a.status, a.balance_nanos, a.held_nanos, a.running into _row
    from tributary.account a where a.id = _account for no key update;
  if not found then verdict := 'unknown'; return; end if;
  balance := _row.balance_nanos;
  held := _row.held_nanos;
  select r.state, r.allowance, r.reserved_nanos, r.input_nanos_per_million, r.output_nanos_per_million
    into verdict, granted, nanos, input_price, output_price
    from tributary.reservation r where r.account_id = _account and r.request_id = _request;
  if found then
    verdict := case verdict when 'open' then 'admitted' else 'ended' end; return;
  end if;
  select k.revoked_at_ms into _revoked_at_ms from tributary.api_key k where k.account_id = _account and k.id = _key;
  if not found then verdict := 'unknown'; return; end if;
  if _revoked_at_ms is not null then verdict := 'revoked'; return; end if;
  if _row.status <> 'active' then verdict := 'disabled'; return; end if;
  if _row.running >= _concurrency then
    perform set_config('synchronous_commit', 'off', true);
    perform tributary.give_ticket_back(_account, _key, _ticket_at_ms, _ticket);
    -- A process that renews has never much less than two thirds of a lease left, and what it runs may end at any time.
    _now := coalesce(_at_ms, tributary.now_ms());
    select min(case when r.lease_until_ms - _now > coalesce(r.lease_ms, _lease_ms) / 2.0 then 0
        else greatest(r.lease_until_ms - _now, 0) end) into free_in_ms
      from tributary.reservation r where r.account_id = _account and r.state = 'open';
    verdict := 'concurrent'; return;
  end if;
  -- Asked again because the first answer was lost: a ticket that has gone tells that the answer was no.
  if _repeated and _ticket is not null and not exists (select 1 from tributary.rate_ticket t
      where t.account_id = _account and t.key_id = _key and t.at_ms = _ticket_at_ms and t.id = _ticket) then
    verdict := 'concurrent'; return;
  end if;
  _available := balance - held;
  affordable := case
    when div(_input + 999999, 1000000) > _available then 0
    when _output_price = 0 then _most
    else least(div(_available * 1000000 - _input, _output_price), _most) end;
  granted := case when _explicit then _cap else least(_cap, affordable) end;
  nanos := tributary.cost_nanos(_input_bound, greatest(granted, 1), _input_price, _output_price);
  if granted < 1 or nanos > _available then
    verdict := 'credit'; return;
  end if;
  _now := coalesce(_at_ms, tributary.now_ms());
  select m.written_sequence, m.written_hash into _sequence, _hash
    from tributary.move(_account, 'reserve', 0, nanos::bigint, 1, _key, _request, null, _now) m;
  insert into tributary.reservation (account_id, request_id, key_id, state, format, streamed, input_bound, allowance,
      input_nanos_per_million, output_nanos_per_million, reserved_nanos, admitted_at_ms, lease_until_ms,
      reserved_sequence, head, owner, lease_ms)
    values (_account, _request, _key, 'open', _format, _streamed, _input_bound, granted,
      _input_price, _output_price, nanos, _now, _now + _lease_ms, _sequence, _hash, _owner, _lease_ms);
  verdict := 'admitted';
  input_price := _input_price;
  output_price := _output_price;
end
$body$;

insert into tributary.migration (number, name) values (5, '0005-owners');
