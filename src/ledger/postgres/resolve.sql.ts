import { limits } from "../../limits.ts";

/**
 * How reservations end. The same rules in TypeScript: `sqlite/resolve.ts`.
 */
export const resolveFunctions = `
-- Resolves a reservation once; _input_tokens null: nothing is charged.
create or replace function tributary.settle(
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
  -- A request that was never admitted holds and owes nothing; one that was resolved before is answered as it was then.
  if not applied then charged := coalesce(_row.charged_nanos, 0); return; end if;
  charged := case when _input_tokens is null then 0 else tributary.charge_nanos(
    _input_tokens, _output_tokens, _row.input_nanos_per_million, _row.output_nanos_per_million, _row.reserved_nanos) end;
  select m.written_sequence, m.written_hash into _sequence, _hash
    from tributary.move(_account, 'settle', -charged, -_row.reserved_nanos, -1, _row.key_id, _request, null, _now) m;
  update tributary.reservation r set state = 'settled', charged_nanos = charged, outcome = _outcome,
      input_tokens = _input_tokens, cached_input_tokens = _cached_input_tokens, output_tokens = _output_tokens,
      reasoning_tokens = _reasoning_tokens, resolved_at_ms = _now, first_output_ms = _first_output_ms,
      total_ms = _total_ms, resolved_sequence = _sequence, head = _hash
    where r.account_id = _account and r.request_id = _request;
end
$body$;

-- Whether a reservation is to be given back: because its owner is dead, or (_dead false) because its lease has ended, or
-- was made by a clock that was ahead, by a process that does not live any more.
create or replace function tributary.is_due(
  _lease_until_ms bigint, _its_lease_ms bigint, _owner text, _dead boolean, _grace_ms bigint, _lease_ms bigint, _now bigint
) returns boolean language sql volatile as $body$
  select case when _dead then tributary.is_dead(_owner, _grace_ms, _now)
    else _lease_until_ms <= _now or (_lease_until_ms > _now + ${String(limits.leasesAheadMax)} * coalesce(_its_lease_ms, _lease_ms)
      and not exists (select 1 from tributary.process p where p.id = _owner and tributary.is_heard(p.number))) end
$body$;

-- Gives back what is due of one account. A reservation that is being renewed at this moment is left alone.
create or replace function tributary.give_back(
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
`;
