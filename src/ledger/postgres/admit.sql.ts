/**
 * Whether a request may run, and what it reserves. The same rules in TypeScript: `sqlite/admit.ts`,
 * `admission/output-allowance.ts`.
 */
export const admitFunctions = `
-- What is granted, what it reserves, and what could be paid for: decideAllowance of admission/output-allowance.ts. _cap is
-- what the allowance may be at most; _explicit: the client named it, so that it is granted whole or not at all; _most is
-- the cap of all requests. Nothing is granted where granted is 0; nanos is then what is needed.
create or replace function tributary.decide_allowance(
  _input_bound bigint, _cap bigint, _explicit boolean, _most bigint, _available numeric,
  _input_price bigint, _output_price bigint, out granted bigint, out nanos numeric, out affordable bigint
) language plpgsql immutable as $body$
begin
  affordable := case
    when tributary.cost_nanos(_input_bound, 0, _input_price, _output_price) > _available then 0
    when _output_price = 0 then _most
    else least(div(_available * 1000000 - _input_bound::numeric * _input_price, _output_price), _most) end;
  granted := case when _explicit then _cap else least(_cap, affordable) end;
  nanos := tributary.cost_nanos(_input_bound, greatest(granted, 1), _input_price, _output_price);
  if nanos > _available then granted := 0; end if;
end
$body$;

-- Key and account again, concurrency, allowance and reservation. free_in_ms: how long at least no slot can be free.
create or replace function tributary.admit(
  _account text, _key text, _request text, _ticket_at_ms bigint, _ticket text, _repeated boolean,
  _input_bound bigint, _cap bigint, _explicit boolean, _most bigint, _format text, _streamed boolean,
  _input_price bigint, _output_price bigint, _concurrency integer, _lease_ms bigint, _owner text, _at_ms bigint,
  out verdict text, out granted bigint, out nanos numeric, out input_price bigint, out output_price bigint,
  out balance bigint, out held bigint, out affordable bigint, out free_in_ms bigint
) language plpgsql as $body$
declare
  _now bigint;
  _row record;
  _allowance record;
  _revoked_at_ms bigint;
  _sequence bigint;
  _hash bytea;
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
    -- A process that renews always has about two thirds of a lease left, or more, and what it runs may end at any time.
    _now := coalesce(_at_ms, tributary.now_ms());
    select min(case when r.lease_until_ms - _now > coalesce(r.lease_ms, _lease_ms) / 2.0 then 0
        else greatest(r.lease_until_ms - _now, 0) end) into free_in_ms
      from tributary.reservation r where r.account_id = _account and r.state = 'open';
    verdict := 'concurrent'; return;
  end if;
  -- Asked again because the first answer was lost: where the ticket is not there any more, that answer was a refusal.
  if _repeated and _ticket is not null and not exists (select 1 from tributary.rate_ticket t
      where t.account_id = _account and t.key_id = _key and t.at_ms = _ticket_at_ms and t.id = _ticket) then
    verdict := 'concurrent'; return;
  end if;
  -- An assignment, since a select would cost as much as the decision.
  _allowance := tributary.decide_allowance(
    _input_bound, _cap, _explicit, _most, balance - held, _input_price, _output_price);
  granted := _allowance.granted;
  nanos := _allowance.nanos;
  affordable := _allowance.affordable;
  if granted < 1 then
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
