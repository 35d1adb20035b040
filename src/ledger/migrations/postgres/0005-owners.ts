/** Who runs a request, whether it lives, and for how long its word holds. Released: never edited, a change is a new number. */
export const owners = `
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
`;
