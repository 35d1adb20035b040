/**
 * The hot operations, one call each. Every one locks its account's row (or its key's window) first and reads and writes
 * after: counting rows of another table within one statement would count in a snapshot older than the lock.
 * Released: never edited, a change is a new number.
 */
export const operations = `
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
`;
