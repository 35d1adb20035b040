import { limits } from "../../limits.ts";
import { joinPrice } from "../price-list.ts";
import { planned } from "./accounts.sql.ts";

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

-- Key and account again, concurrency, allowance and reservation, for each of some requests, which stand in the order of
-- their accounts' and keys' ids: all replicas lock rows in that order. A refusal is the row of its own request.
-- Of a refusal for concurrency granted is how many requests of the account may run.
-- _lock_ms: how long the lock of an account may be waited for; null: as long as a statement may take. free_in_ms: how
-- long at least no slot can be free. _input_price and _output_price are those of accounts whose list the ledger does not
-- have, which is \`default\`. 'grant': a grant of the account is due, and the request is asked for again
-- when it is paid. budget: of a refusal for it, and of the verdict 'period': its last period is over, and the
-- request is asked for again when \`begin_period\` has begun the next one, as calendars of time zones are not known here.
create or replace function tributary.admit_each(
  _accounts text[], _keys text[], _requests text[], _tickets_at_ms bigint[], _tickets text[], _repeated boolean[],
  _input_bounds bigint[], _caps bigint[], _explicit boolean[], _formats text[], _streamed boolean[], _most bigint,
  _input_price bigint, _output_price bigint, _concurrency integer, _lease_ms bigint, _owner text, _lock_ms integer,
  _at_ms bigint, _labels text[]
) returns table (
  place bigint, verdict text, granted bigint, nanos numeric, input_price bigint, output_price bigint, balance bigint,
  held bigint, affordable bigint, free_in_ms bigint, budget jsonb
) language plpgsql ${planned} as $body$
declare
  _setting text;
  _now bigint;
  _one record;
  _nth integer;
  _account text;
  _balance bigint;
  _held bigint;
  _running integer;
  _admitted_here boolean;
  _key text;
  _budget_held bigint;
  _left bigint;
  _begins bigint[];
  _allowance record;
  _refused boolean := false;
  _is_taken_back boolean;
  -- Most requests are of keys without a budget.
  _is_budgeted boolean := false;
  _count integer := 0;
  _nths integer[];
  _allowances bigint[];
  _nanos bigint[];
  _lists text[];
  _inputs bigint[];
  _cached bigint[];
  _outputs bigint[];
  _its_accounts text[];
  _its_keys text[];
  _its_requests text[];
  _moved record;
begin
  if _lock_ms is not null then _setting := set_config('lock_timeout', _lock_ms::text, true); end if;
  perform 1 from tributary.account a where a.id = any(_accounts) order by a.id for no key update;
  _now := coalesce(_at_ms, tributary.now_ms());
  for _one in
    select q.nth::integer as nth, account.id as known_account, account.balance_nanos, account.held_nanos, account.running,
        account.grant_next_ms, k.id as known_key,
        tributary.key_refusal(k.revoked_at_ms, k.expires_at_ms, k.status, account.status, k.scopes, 'generate', _now)
          as refusal,
        coalesce(account.concurrent_requests, _concurrency) as slots,
        least(_most, account.output_tokens_max, k.output_tokens_max) as most,
        k.name as key_name, k.budget_nanos, k.budget_period, k.budget_timezone, k.budget_begin_ms, k.budget_end_ms,
        k.budget_spent_nanos, k.budget_held_nanos,
        r.state, r.allowance, r.reserved_nanos, r.input_nanos_per_million, r.output_nanos_per_million,
        price.list, coalesce(price.input_nanos_per_million, _input_price) as input_now,
        price.cached_input_nanos_per_million as cached_now,
        coalesce(price.output_nanos_per_million, _output_price) as output_now
      from unnest(_accounts, _keys, _requests) with ordinality as q(account, key, request, nth)
      left join tributary.account account on account.id = q.account
      left join tributary.api_key k on k.account_id = q.account and k.id = q.key
      left join tributary.reservation r on r.account_id = q.account and r.request_id = q.request
      ${joinPrice("tributary.", "_now")}
      order by q.nth
  loop
    _nth := _one.nth;
    if _accounts[_nth] is distinct from _account or _keys[_nth] is distinct from _key then
      _key := _keys[_nth];
      _budget_held := _one.budget_held_nanos;
    end if;
    if _accounts[_nth] is distinct from _account then
      _account := _accounts[_nth];
      _balance := _one.balance_nanos;
      _held := _one.held_nanos;
      _running := _one.running;
      _admitted_here := false;
    end if;
    -- Asked again because the first answer was lost: where the ticket is not there any more, that answer was a refusal, which
    -- took it away. Of one that has left its window meanwhile nothing can be said, and the request is decided anew.
    _is_taken_back := false;
    if _repeated[_nth] and abs(_now - _tickets_at_ms[_nth]) < ${String(limits.rateWindowMs)} then
      _is_taken_back := not exists (select 1 from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key
        and t.at_ms = _tickets_at_ms[_nth] and t.id = _tickets[_nth]);
    end if;
    place := _nth;
    balance := _balance;
    held := _held;
    if _nth > 1 then
      granted := null;
      nanos := null;
      input_price := null;
      output_price := null;
      affordable := null;
      free_in_ms := null;
      budget := null;
    end if;
    if _one.known_account is null then verdict := 'unknown';
    elsif _one.state is not null then
      verdict := case _one.state when 'open' then 'admitted' else 'ended' end;
      granted := _one.allowance;
      nanos := _one.reserved_nanos;
      input_price := _one.input_nanos_per_million;
      output_price := _one.output_nanos_per_million;
    elsif _one.known_key is null then verdict := 'unknown';
    elsif _one.refusal is not null then verdict := _one.refusal;
    elsif _running >= _one.slots then
      verdict := 'concurrent';
      granted := _one.slots;
      _refused := true;
      perform tributary.give_ticket_back(_account, _key, _tickets_at_ms[_nth], _tickets[_nth]);
      -- A process that renews always has about two thirds of a lease left, or more, and what it runs may end at any time.
      free_in_ms := case when _admitted_here then 0 else (
        select min(case when r.lease_until_ms - _now > coalesce(r.lease_ms, _lease_ms) / 2.0 then 0
            else greatest(r.lease_until_ms - _now, 0) end)
          from tributary.reservation r where r.account_id = _account and r.state = 'open') end;
    elsif _is_taken_back then
      verdict := 'concurrent';
      granted := _one.slots;
    elsif _one.grant_next_ms <= _now then verdict := 'grant';
    elsif _one.budget_end_ms <= _now then verdict := 'period';
    else
      _left := _one.budget_nanos - _one.budget_spent_nanos - _budget_held;
      -- An assignment, since a select would cost as much as the decision.
      _allowance := tributary.decide_allowance(
        _input_bounds[_nth], least(_caps[_nth], _one.most), _explicit[_nth], _one.most, least(_balance - _held, _left),
        greatest(_one.input_now, _one.cached_now), _one.output_now);
      granted := _allowance.granted;
      nanos := _allowance.nanos;
      affordable := _allowance.affordable;
      verdict := case when _left < _balance - _held then 'budget' else 'credit' end;
      if granted >= 1 then
        verdict := 'admitted';
        input_price := _one.input_now;
        output_price := _one.output_now;
        _held := _held + nanos::bigint;
        _budget_held := _budget_held + nanos::bigint;
        _is_budgeted := _is_budgeted or _one.budget_begin_ms is not null;
        _running := _running + 1;
        _admitted_here := true;
        _count := _count + 1;
        _nths[_count] := _nth;
        _begins[_count] := _one.budget_begin_ms;
        _allowances[_count] := granted;
        _nanos[_count] := nanos::bigint;
        _lists[_count] := _one.list;
        _inputs[_count] := _one.input_now;
        _cached[_count] := _one.cached_now;
        _outputs[_count] := _one.output_now;
        _its_accounts[_count] := _account;
        _its_keys[_count] := _key;
        _its_requests[_count] := _requests[_nth];
      end if;
    end if;
    if verdict in ('budget', 'period') then
      budget := jsonb_build_object('key_name', _one.key_name, 'budget_period', _one.budget_period, 'budget_timezone',
        _one.budget_timezone, 'now', _now::text, 'budget_nanos', _one.budget_nanos::text, 'budget_begin_ms',
        _one.budget_begin_ms::text, 'budget_end_ms', _one.budget_end_ms::text, 'budget_spent_nanos',
        _one.budget_spent_nanos::text, 'budget_held_nanos', _budget_held::text);
    end if;
    return next;
  end loop;
  if _count > 0 then
    if _is_budgeted then perform tributary.hold_budgets(_its_accounts, _its_keys, _begins, _nanos); end if;
    _moved := tributary.move_each(_its_accounts, 'reserve', array_fill(0::bigint, array[_count]), _nanos, 1, _its_keys,
      _its_requests, null, _now);
    insert into tributary.reservation (account_id, request_id, key_id, state, format, streamed, label, input_bound,
        allowance, price_list, input_nanos_per_million, cached_input_nanos_per_million, output_nanos_per_million,
        reserved_nanos, admitted_at_ms, lease_until_ms, reserved_sequence, head, owner, lease_ms, budget_begin_ms)
      select _its_accounts[q.i], _its_requests[q.i], _its_keys[q.i], 'open', _formats[q.nth], _streamed[q.nth],
          _labels[q.nth], _input_bounds[q.nth], _allowances[q.i], _lists[q.i], _inputs[q.i], _cached[q.i], _outputs[q.i],
          _nanos[q.i], _now, _now + _lease_ms, _moved.written_sequences[q.i], _moved.written_hashes[q.i], _owner, _lease_ms,
          _begins[q.i]
        from unnest(_nths) with ordinality as q(nth, i);
  elsif _refused then
    -- Only tickets were given back, which no commit is synced for.
    perform set_config('synchronous_commit', 'off', true);
  end if;
end
$body$;

-- One request, as replicas of the schemas before 9 ask.
create or replace function tributary.admit(
  _account text, _key text, _request text, _ticket_at_ms bigint, _ticket text, _repeated boolean,
  _input_bound bigint, _cap bigint, _explicit boolean, _most bigint, _format text, _streamed boolean,
  _input_price bigint, _output_price bigint, _concurrency integer, _lease_ms bigint, _owner text, _at_ms bigint,
  out verdict text, out granted bigint, out nanos numeric, out input_price bigint, out output_price bigint,
  out balance bigint, out held bigint, out affordable bigint, out free_in_ms bigint
) language plpgsql as $body$
begin
  select e.verdict, e.granted, e.nanos, e.input_price, e.output_price, e.balance, e.held, e.affordable, e.free_in_ms
    into verdict, granted, nanos, input_price, output_price, balance, held, affordable, free_in_ms
    from tributary.admit_each(array[_account], array[_key], array[_request], array[_ticket_at_ms], array[_ticket],
      array[_repeated], array[_input_bound], array[_cap], array[_explicit], array[_format], array[_streamed], _most,
      _input_price, _output_price, _concurrency, _lease_ms, _owner, null, _at_ms, array[null::text]) e;
end
$body$;

-- Some requests, as replicas of schema 9 ask.
create or replace function tributary.admit_each(
  _accounts text[], _keys text[], _requests text[], _tickets_at_ms bigint[], _tickets text[], _repeated boolean[],
  _input_bounds bigint[], _caps bigint[], _explicit boolean[], _formats text[], _streamed boolean[], _most bigint,
  _input_price bigint, _output_price bigint, _concurrency integer, _lease_ms bigint, _owner text, _lock_ms integer,
  _at_ms bigint
) returns table (
  place bigint, verdict text, granted bigint, nanos numeric, input_price bigint, output_price bigint, balance bigint,
  held bigint, affordable bigint, free_in_ms bigint
) language sql as $body$
  select place, verdict, granted, nanos, input_price, output_price, balance, held, affordable, free_in_ms
    from tributary.admit_each(_accounts, _keys, _requests, _tickets_at_ms, _tickets, _repeated, _input_bounds,
    _caps, _explicit, _formats, _streamed, _most, _input_price, _output_price, _concurrency, _lease_ms, _owner, _lock_ms,
    _at_ms, array_fill(null::text, array[cardinality(_accounts)]))
$body$;
`;
