import { limits } from "../../limits.ts";
import { planned } from "./accounts.sql.ts";

/**
 * How reservations end. The same rules in TypeScript: `sqlite/resolve.ts`.
 */
export const resolveFunctions = `
-- Resolves each of some reservations once; they stand in the order of their accounts' and their own ids, in which all
-- replicas lock rows. _input_tokens null: nothing is charged. _lock_ms: as for admit_each.
create or replace function tributary.settle_each(
  _accounts text[], _requests text[], _outcomes text[], _input_tokens bigint[], _cached_input_tokens bigint[],
  _output_tokens bigint[], _reasoning_tokens bigint[], _first_output_ms bigint[], _total_ms bigint[], _lock_ms integer,
  _at_ms bigint
) returns table (place bigint, charged bigint, applied boolean) language plpgsql ${planned} as $body$
declare
  _setting text;
  _now bigint;
  _one record;
  _count integer := 0;
  _is_budgeted boolean := false;
  _nths integer[];
  _charges bigint[];
  _deltas bigint[];
  _holds bigint[];
  _begins bigint[];
  _reserved bigint[];
  _its_accounts text[];
  _its_keys text[];
  _its_requests text[];
  _moved record;
  _written bigint;
begin
  if _lock_ms is not null then _setting := set_config('lock_timeout', _lock_ms::text, true); end if;
  perform 1 from tributary.account a where a.id = any(_accounts) order by a.id for no key update;
  _now := coalesce(_at_ms, tributary.now_ms());
  for _nth in 1 .. cardinality(_accounts) loop
    select r.key_id, r.budget_begin_ms, r.state, r.reserved_nanos, r.charged_nanos, r.input_nanos_per_million,
        coalesce(r.cached_input_nanos_per_million, r.input_nanos_per_million) as cached_price, r.output_nanos_per_million
      into _one
      from tributary.reservation r where r.account_id = _accounts[_nth] and r.request_id = _requests[_nth];
    place := _nth;
    applied := coalesce(_one.state = 'open', false);
    -- A request that was never admitted holds and owes nothing; one that was resolved before is answered as it was then.
    charged := coalesce(_one.charged_nanos, 0);
    if applied then
      if _input_tokens[_nth] is not null then
        charged := tributary.charge_nanos(_input_tokens[_nth], _cached_input_tokens[_nth], _output_tokens[_nth],
          _one.input_nanos_per_million, _one.cached_price, _one.output_nanos_per_million, _one.reserved_nanos);
      end if;
      _count := _count + 1;
      _nths[_count] := _nth;
      _charges[_count] := charged;
      _deltas[_count] := -charged;
      _holds[_count] := -_one.reserved_nanos;
      _begins[_count] := _one.budget_begin_ms;
      _is_budgeted := _is_budgeted or _one.budget_begin_ms is not null;
      _reserved[_count] := _one.reserved_nanos;
      _its_accounts[_count] := _accounts[_nth];
      _its_keys[_count] := _one.key_id;
      _its_requests[_count] := _requests[_nth];
    end if;
    return next;
  end loop;
  if _count = 0 then return; end if;
  _moved := tributary.move_each(_its_accounts, 'settle', _deltas, _holds, -1, _its_keys, _its_requests, null, _now);
  if _is_budgeted then perform tributary.resolve_budgets(_its_accounts, _its_keys, _begins, _reserved, _charges); end if;
  update tributary.reservation r set state = 'settled', charged_nanos = _charges[q.i], outcome = _outcomes[q.nth],
      input_tokens = _input_tokens[q.nth], cached_input_tokens = _cached_input_tokens[q.nth],
      output_tokens = _output_tokens[q.nth], reasoning_tokens = _reasoning_tokens[q.nth], resolved_at_ms = _now,
      first_output_ms = _first_output_ms[q.nth], total_ms = _total_ms[q.nth],
      resolved_sequence = _moved.written_sequences[q.i], head = _moved.written_hashes[q.i]
    from unnest(_its_accounts, _its_requests, _nths) with ordinality as q(account, request, nth, i)
    where r.account_id = q.account and r.request_id = q.request;
  get diagnostics _written = row_count;
  if _written <> _count then
    raise exception 'settle: of % reservations % were resolved: one stands among them twice', _count, _written;
  end if;
end
$body$;

-- One reservation, as replicas of the schemas before 9 ask.
create or replace function tributary.settle(
  _account text, _request text, _outcome text, _input_tokens bigint, _cached_input_tokens bigint, _output_tokens bigint,
  _reasoning_tokens bigint, _first_output_ms bigint, _total_ms bigint, _at_ms bigint,
  out charged bigint, out applied boolean
) language plpgsql as $body$
begin
  select e.charged, e.applied into charged, applied
    from tributary.settle_each(array[_account], array[_request], array[_outcome], array[_input_tokens],
      array[_cached_input_tokens], array[_output_tokens], array[_reasoning_tokens], array[_first_output_ms],
      array[_total_ms], null, _at_ms) e;
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
  for _row in select r.request_id, r.key_id, r.budget_begin_ms, r.reserved_nanos from tributary.reservation r
      where r.account_id = _account and r.state = 'open'
        and tributary.is_due(r.lease_until_ms, r.lease_ms, r.owner, _dead, _grace_ms, _lease_ms, _now)
      order by r.lease_until_ms, r.request_id for update skip locked
  loop
    select m.written_sequence, m.written_hash into _sequence, _hash
      from tributary.move(_account, 'expire', 0, -_row.reserved_nanos, -1, 'service', _row.request_id, null, _now) m;
    perform tributary.resolve_budgets(array[_account], array[_row.key_id], array[_row.budget_begin_ms],
      array[_row.reserved_nanos], array[0::bigint]);
    update tributary.reservation r set state = 'expired', charged_nanos = 0, outcome = 'lease-lost',
        resolved_at_ms = _now, resolved_sequence = _sequence, head = _hash
      where r.account_id = _account and r.request_id = _row.request_id;
    _count := _count + 1;
  end loop;
  return _count;
end
$body$;
`;
