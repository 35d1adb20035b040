import { dearestLeastNanos } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import { joinPrice } from "../price-list.ts";
import { planned } from "./accounts.sql.ts";

/**
 * Keys and their rate windows. The same rules in TypeScript: `sqlite/authorize.ts`, `sqlite/rate-window.ts`.
 */
export const authorizeFunctions = `
-- Why a key may not do what needs _scope (null: nothing does); null: it may.
create or replace function tributary.key_refusal(
  _revoked_at_ms bigint, _expires_at_ms bigint, _key_status text, _account_status text, _scopes text, _scope text,
  _now bigint
) returns text language sql immutable as $body$
  select case when _revoked_at_ms is not null then 'revoked' when _expires_at_ms <= _now then 'expired'
    when _key_status <> 'active' then 'paused' when _account_status <> 'active' then 'disabled'
    when strpos(_scopes, _scope) = 0 then 'scope' end
$body$;

-- Key, account, a ticket in the key's window, and a balance that pays for the smallest request, for each of some callers,
-- which stand in the order of their accounts' and keys' ids. The smallest request costs _leasts at the prices of the
-- settings (0: none is needed; below: it is, and they are free); a ticket counts also where the balance is too small. The
-- hashes are compared behind a nonce, so that the time of the comparison does not depend on how much of them is equal; an
-- unknown key takes as long. What needs a balance needs the scope 'generate', what takes no ticket 'read'. _limit is that
-- of accounts without one of their own; rate_limit is what the key is held to, slots how many requests of the account may
-- run (null: as the service says). _lock_ms: how long the lock of a key's window may be waited for; null: as long as a
-- statement may take.
create or replace function tributary.authorize_each(
  _accounts text[], _keys text[], _hashes bytea[], _nonce bytea, _tickets text[], _limit bigint, _window_ms bigint,
  _leasts bigint[], _lock_ms integer, _at_ms bigint
) returns table (
  place bigint, verdict text, live bigint, newest bigint, fits_at bigint, now bigint, balance bigint, held bigint,
  needed bigint, rate_limit bigint, slots integer
) language plpgsql ${planned} as $body$
declare
  _setting text;
  _found record;
  _taken record;
  _no_hash constant bytea := decode(repeat('00', 32), 'hex');
  _least bigint;
  _given bytea;
  _is_secret boolean;
  _is_previous boolean;
  _granted boolean;
begin
  if _lock_ms is not null then _setting := set_config('lock_timeout', _lock_ms::text, true); end if;
  for _at in 1 .. cardinality(_accounts) loop
    place := _at;
    if _at > 1 then
      live := null;
      newest := null;
      fits_at := null;
      balance := null;
      held := null;
      needed := null;
      rate_limit := null;
      slots := null;
    end if;
    now := coalesce(_at_ms, tributary.now_ms());
    _least := _leasts[_at];
    select k.secret_hash, k.previous_hash, k.previous_until_ms, a.concurrent_requests,
        a.balance_nanos, least(coalesce(a.requests_per_minute, _limit), k.requests_per_minute) as rate_limit,
        tributary.key_refusal(k.revoked_at_ms, k.expires_at_ms, k.status, a.status, k.scopes,
          case when _least <> 0 then 'generate' when _tickets[_at] is null then 'read' end, now) as refusal
      into _found
      from tributary.api_key k join tributary.account a on a.id = k.account_id
      where k.account_id = _accounts[_at] and k.id = _keys[_at];
    _given := sha256(_hashes[_at] || _nonce);
    _is_secret := sha256(coalesce(_found.secret_hash, _no_hash) || _nonce) = _given and _found.secret_hash is not null;
    _is_previous := sha256(coalesce(_found.previous_hash, _no_hash) || _nonce) = _given and _found.previous_hash is not null;
    verdict := case when not (_is_secret or _is_previous) then 'unknown'
      when not _is_secret and _found.previous_until_ms <= now then 'replaced' else _found.refusal end;
    if verdict is null then
      rate_limit := _found.rate_limit;
      slots := _found.concurrent_requests;
      if _tickets[_at] is null then
        select count(*), max(t.at_ms) into live, newest from tributary.rate_ticket t
          where t.account_id = _accounts[_at] and t.key_id = _keys[_at] and t.at_ms > now - _window_ms
            and t.at_ms <= now + _window_ms;
      else
        -- An assignment, since a select would cost as much as a statement that reads a table.
        _taken := tributary.take_ticket(_accounts[_at], _keys[_at], _tickets[_at], rate_limit, _window_ms, _at_ms);
        live := _taken.live;
        newest := _taken.newest;
        fits_at := _taken.fits_at;
        now := _taken.now;
      end if;
      verdict := case when fits_at is null then 'known' else 'rate' end;
      -- Most balances pay for the smallest request whatever a price may be, and then no price is looked up.
      if verdict = 'known' and _least <> 0 and _found.balance_nanos < ${String(dearestLeastNanos)} then
        select account.balance_nanos, account.held_nanos,
            coalesce(tributary.cost_nanos(${String(limits.inputBoundPerRequest)}, 1,
              greatest(price.input_nanos_per_million, price.cached_input_nanos_per_million),
              price.output_nanos_per_million), greatest(_least, 0)),
            coalesce(account.grant_next_ms <= now, false)
          into balance, held, needed, _granted
          from tributary.account account ${joinPrice("tributary.", "now")}
          where account.id = _accounts[_at];
        -- A grant that is due is paid by the admission.
        if balance < needed and not _granted then verdict := 'credit'; end if;
      end if;
    end if;
    return next;
  end loop;
end
$body$;

-- One caller, as replicas of the schemas before 9 ask.
create or replace function tributary.authorize(
  _account text, _key text, _hash bytea, _nonce bytea, _ticket text, _limit bigint, _window_ms bigint, _at_ms bigint,
  _least bigint,
  out verdict text, out live bigint, out newest bigint, out fits_at bigint, out now bigint,
  out balance bigint, out held bigint, out needed bigint, out rate_limit bigint, out slots integer
) language plpgsql as $body$
begin
  select e.verdict, e.live, e.newest, e.fits_at, e.now, e.balance, e.held, e.needed, e.rate_limit, e.slots
    into verdict, live, newest, fits_at, now, balance, held, needed, rate_limit, slots
    from tributary.authorize_each(array[_account], array[_key], array[_hash], _nonce, array[_ticket], _limit, _window_ms,
      array[_least], null, _at_ms) e;
end
$body$;

-- A ticket in the key's window: fits_at null where there is room, else when one will fit, and none is taken.
create or replace function tributary.take_ticket(
  _account text, _key text, _ticket text, _limit bigint, _window_ms bigint, _at_ms bigint,
  out live bigint, out newest bigint, out fits_at bigint, out now bigint
) language plpgsql as $body$
declare
  _setting text := set_config('synchronous_commit', 'off', true);
  _oldest bigint;
  _gone bigint;
begin
  loop
    select w.held into live from tributary.rate_window w
      where w.account_id = _account and w.key_id = _key for no key update;
    exit when found;
    insert into tributary.rate_window (account_id, key_id, held, newest_ms)
      values (_account, _key, 0, coalesce(_at_ms, tributary.now_ms()))
      on conflict do nothing;
  end loop;
  now := coalesce(_at_ms, tributary.now_ms());
  -- Each of them is one row of the index, whatever the server knows of the table; a delete that finds nothing is dearer.
  select (select t.at_ms from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key
        order by t.at_ms limit 1),
      (select t.at_ms from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key
        order by t.at_ms desc limit 1)
    into _oldest, newest;
  if _oldest <= now - _window_ms then
    delete from tributary.rate_ticket t
      where t.account_id = _account and t.key_id = _key and t.at_ms <= now - _window_ms;
    get diagnostics _gone = row_count;
    live := live - _gone;
    if newest <= now - _window_ms then newest := null; end if;
  end if;
  -- A ticket from more than a window ahead was taken before the clock was set back, and would block until then.
  if newest > now + _window_ms then
    delete from tributary.rate_ticket t
      where t.account_id = _account and t.key_id = _key and t.at_ms > now + _window_ms;
    get diagnostics _gone = row_count;
    live := live - _gone;
    select max(t.at_ms) into newest from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key;
  end if;
  if live >= _limit then
    -- The oldest ticket, or one further on where the operator has lowered the limit.
    select t.at_ms into fits_at from tributary.rate_ticket t where t.account_id = _account and t.key_id = _key
      order by t.at_ms offset live - _limit limit 1;
    fits_at := coalesce(fits_at, now) + _window_ms;
  else
    insert into tributary.rate_ticket (account_id, key_id, at_ms, id) values (_account, _key, now, _ticket);
    live := live + 1;
    newest := greatest(newest, now);
  end if;
  update tributary.rate_window w set held = live, newest_ms = coalesce(newest, now)
    where w.account_id = _account and w.key_id = _key;
end
$body$;

-- Gives a ticket back; false when it is not there any more.
create or replace function tributary.give_ticket_back(_account text, _key text, _ticket_at_ms bigint, _ticket text)
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

-- Forgets windows whose newest ticket is older than a window lasts, and tickets from more than a window ahead, which were
-- taken before the clock was set back, and would count once more when it comes there again.
create or replace function tributary.sweep_rate(_window_ms bigint, _most integer, _at_ms bigint)
returns void language plpgsql as $body$
declare
  _now bigint := coalesce(_at_ms, tributary.now_ms());
  _row record;
  _gone bigint;
  _newest bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  for _row in select w.account_id, w.key_id from tributary.rate_window w
      where w.newest_ms <= _now - _window_ms or w.newest_ms > _now + _window_ms limit _most for update skip locked
  loop
    delete from tributary.rate_ticket t where t.account_id = _row.account_id and t.key_id = _row.key_id
      and (t.at_ms <= _now - _window_ms or t.at_ms > _now + _window_ms);
    get diagnostics _gone = row_count;
    select max(t.at_ms) into _newest from tributary.rate_ticket t
      where t.account_id = _row.account_id and t.key_id = _row.key_id;
    if _newest is null then
      delete from tributary.rate_window w where w.account_id = _row.account_id and w.key_id = _row.key_id;
    else
      update tributary.rate_window w set held = w.held - _gone, newest_ms = _newest
        where w.account_id = _row.account_id and w.key_id = _row.key_id;
    end if;
  end loop;
end
$body$;
`;
