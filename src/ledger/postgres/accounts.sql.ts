/**
 * What changes a balance, and what tokens cost. The same rules in TypeScript: `sqlite/accounts.ts`, `admission/price.ts`.
 */
export const accountFunctions = `
-- Milliseconds since 1970, now and not at the begin of the transaction, which may have waited for a lock.
create or replace function tributary.now_ms() returns bigint language sql volatile as $body$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$body$;

-- What tokens cost, rounded up: costNanos of admission/price.ts.
create or replace function tributary.cost_nanos(
  _input_tokens bigint, _output_tokens bigint, _input_price bigint, _output_price bigint
) returns numeric language sql immutable as $body$
  select div(_input_tokens::numeric * _input_price + _output_tokens::numeric * _output_price + 999999, 1000000)
$body$;

-- What a usage costs, never more than was reserved: chargeNanos of admission/price.ts.
create or replace function tributary.charge_nanos(
  _input_tokens bigint, _output_tokens bigint, _input_price bigint, _output_price bigint, _reserved bigint
) returns bigint language sql immutable as $body$
  select least(_reserved, tributary.cost_nanos(_input_tokens, _output_tokens, _input_price, _output_price))::bigint
$body$;

-- The only place that changes a balance: from the row itself, with the journal entry beside it. The bytes that are
-- hashed are those of ledger/journal.ts.
create or replace function tributary.move(
  _account text, _kind text, _balance_delta bigint, _held_delta bigint, _running_delta integer, _actor text,
  _request text, _note text, _now bigint, out written_sequence bigint, out written_hash bytea
) language plpgsql as $body$
begin
  -- Every caller locks the account's row, or has just made it, in the same transaction, which then has an id: what
  -- belongs to the movement is committed with it, or not at all.
  if pg_current_xact_id_if_assigned() is null then
    raise exception 'move: the transaction has not locked account % before', _account;
  end if;
  -- Credit that moved survives a power cut, whatever the session's setting.
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
`;
