/**
 * How a function that is given arrays looks up rows for them: one by one, by their keys. Before the server has statistics
 * it would read whole tables for a handful of rows, and a plan made for one length of an array serves any other.
 */
export const planned =
  "set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off";

/**
 * What changes a balance, and what tokens cost. The same rules in TypeScript: `sqlite/accounts.ts`, `admission/price.ts`.
 */
export const accountFunctions = `
-- Milliseconds since 1970, now and not at the begin of the transaction, which may have waited for a lock.
create or replace function tributary.now_ms() returns bigint language sql volatile as $body$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$body$;

-- What tokens cost where none was cached, rounded up: costNanos of admission/price.ts.
create or replace function tributary.cost_nanos(
  _input_tokens bigint, _output_tokens bigint, _input_price bigint, _output_price bigint
) returns numeric language sql immutable as $body$
  select div(_input_tokens::numeric * _input_price + _output_tokens::numeric * _output_price + 999999, 1000000)
$body$;

-- What a usage costs, the sum rounded up once, and never more than was reserved: chargeNanos of admission/price.ts.
create or replace function tributary.charge_nanos(
  _input_tokens bigint, _cached_tokens bigint, _output_tokens bigint, _input_price bigint, _cached_price bigint,
  _output_price bigint, _reserved bigint
) returns bigint language sql immutable as $body$
  select least(_reserved, div((_input_tokens - least(_cached_tokens, _input_tokens))::numeric * _input_price
    + least(_cached_tokens, _input_tokens)::numeric * _cached_price + _output_tokens::numeric * _output_price + 999999,
    1000000))::bigint
$body$;

-- The only place that changes balances: from the rows themselves, with the journal entries beside them. Movements of one
-- account stand together and are chained in their order; its row is written once. The bytes that are hashed are those
-- of ledger/journal.ts.
create or replace function tributary.move_each(
  _accounts text[], _kind text, _balance_deltas bigint[], _held_deltas bigint[], _running_delta integer, _actors text[],
  _requests text[], _note text, _now bigint, out written_sequences bigint[], out written_hashes bytea[]
) language plpgsql as $body$
declare
  _setting text;
  _account text;
  _sequence bigint;
  _hash bytea;
  _balance bigint;
  _held bigint;
  _moves integer;
  -- Of each account: what its movements come to.
  _at integer := 0;
  _its_ids text[];
  _its_balances bigint[];
  _its_helds bigint[];
  _its_moves integer[];
  _its_sequences bigint[];
  _its_hashes bytea[];
begin
  -- Every caller locks the accounts' rows, or has just made one, in the same transaction, which then has an id: what
  -- belongs to the movement is committed with it, or not at all.
  if pg_current_xact_id_if_assigned() is null then
    raise exception 'move: the transaction has not locked account % before', _accounts[1];
  end if;
  -- Credit that moved survives a power cut, whatever the session's setting.
  if current_setting('synchronous_commit') = 'off' then
    _setting := set_config('synchronous_commit', 'on', true);
  end if;
  for _nth in 1 .. cardinality(_accounts) loop
    if _accounts[_nth] is distinct from _account then
      _account := _accounts[_nth];
      select a.entries, a.head into _sequence, _hash from tributary.account a where a.id = _account;
      if not found then raise exception 'move: account % is not there', _account; end if;
      _at := _at + 1;
      _its_ids[_at] := _account;
      _balance := 0;
      _held := 0;
      _moves := 0;
    end if;
    _sequence := _sequence + 1;
    _hash := sha256(_hash || convert_to(concat_ws(chr(10), 'tributary-entry-1', _account, _sequence, _now, _kind,
      _balance_deltas[_nth], _held_deltas[_nth], _actors[_nth], coalesce(_requests[_nth], ''), coalesce('=' || _note, '')),
      'UTF8'));
    written_sequences[_nth] := _sequence;
    written_hashes[_nth] := _hash;
    _balance := _balance + _balance_deltas[_nth];
    _held := _held + _held_deltas[_nth];
    _moves := _moves + _running_delta;
    _its_balances[_at] := _balance;
    _its_helds[_at] := _held;
    _its_moves[_at] := _moves;
    _its_sequences[_at] := _sequence;
    _its_hashes[_at] := _hash;
  end loop;
  update tributary.account a set balance_nanos = a.balance_nanos + _its_balances[at],
      held_nanos = a.held_nanos + _its_helds[at], running = a.running + _its_moves[at], entries = _its_sequences[at],
      head = _its_hashes[at], grant_left_nanos = greatest(a.grant_left_nanos + least(_its_balances[at], 0), 0)
    from unnest(_its_ids) with ordinality as q(id, at)
    where a.id = q.id;
  insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
      request_id, note, hash)
    select _accounts[place], q.sequence, _now, _kind, _balance_deltas[place], _held_deltas[place],
        _actors[place], _requests[place], _note, written_hashes[place]
      from unnest(written_sequences) with ordinality as q(sequence, place);
end
$body$;

-- One movement.
create or replace function tributary.move(
  _account text, _kind text, _balance_delta bigint, _held_delta bigint, _running_delta integer, _actor text,
  _request text, _note text, _now bigint, out written_sequence bigint, out written_hash bytea
) language plpgsql ${planned} as $body$
begin
  select m.written_sequences[1], m.written_hashes[1] into strict written_sequence, written_hash
    from tributary.move_each(array[_account], _kind, array[_balance_delta], array[_held_delta], _running_delta,
      array[_actor], array[_request], _note, _now) m;
end
$body$;

-- One movement of credit of a kind that is hashed with its reference and its receipt (creditKinds of ledger/journal.ts).
-- Like move_each it wants the account's row locked. What it is known by is kept for good.
create or replace function tributary.move_credit(
  _account text, _kind text, _amount bigint, _actor text, _reference text, _receipt text, _note text, _now bigint,
  out written_sequence bigint, out written_hash bytea
) language plpgsql ${planned} as $body$
declare
  _balance bigint;
  _held bigint;
begin
  if pg_current_xact_id_if_assigned() is null then
    raise exception 'move: the transaction has not locked account % before', _account;
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  select a.entries + 1, sha256(a.head || convert_to(concat_ws(chr(10), 'tributary-entry-2', _account, a.entries + 1, _now,
      _kind, _amount, 0, _actor, '', coalesce(_reference, ''), coalesce(_receipt, ''), coalesce('=' || _note, '')), 'UTF8'))
    into strict written_sequence, written_hash
    from tributary.account a where a.id = _account;
  update tributary.account a set balance_nanos = a.balance_nanos + _amount, entries = written_sequence, head = written_hash,
      grant_left_nanos = greatest(a.grant_left_nanos + least(_amount, 0), 0)
    where a.id = _account returning a.balance_nanos, a.held_nanos into strict _balance, _held;
  insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, reference,
      receipt, note, hash)
    values (_account, written_sequence, _now, _kind, _amount, 0, _actor, _reference, _receipt, _note, written_hash);
  if _reference is null and _receipt is null then return; end if;
  insert into tributary.kept_credit (account_id, sequence, at_ms, kind, amount_nanos, actor, reference, receipt, note, hash,
      balance_nanos, held_nanos)
    values (_account, written_sequence, _now, _kind, _amount, _actor, _reference, _receipt, _note, written_hash, _balance,
      _held);
  if _receipt is null then return; end if;
  update tributary.reservation r set refunded_nanos = r.refunded_nanos + _amount
    where r.account_id = _account and r.request_id = _receipt;
  if not found then raise exception 'move: account % has no receipt % to give back', _account, _receipt; end if;
end
$body$;
`;
