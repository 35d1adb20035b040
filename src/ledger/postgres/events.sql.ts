/**
 * Events that a change of a row causes. The same in SQLite: the triggers of `migrations/sqlite/`.
 */
export const eventFunctions = `
-- The balance of an account has risen, or has fallen below the balance that its operator calls low. A row that moves
-- otherwise never comes here: the trigger's own condition keeps it away.
create or replace function tributary.account_moves() returns trigger language plpgsql as $body$
begin
  if new.balance_nanos > old.balance_nanos then
    new.exhausted := 0;
    new.balance_low := case when new.balance_nanos <= new.low_balance_nanos then new.balance_low else 0 end;
    insert into tributary.outbox (type, account_id, entry, facts_json) values ('account.credited', new.id, new.entries,
      json_build_object('amount_nanos', (new.balance_nanos - old.balance_nanos)::text,
        'balance_nanos', new.balance_nanos::text)::text);
  else
    new.balance_low := 1;
    insert into tributary.outbox (type, account_id, entry, facts_json) values ('account.low_balance', new.id, new.entries,
      json_build_object('balance_nanos', new.balance_nanos::text,
        'low_balance_at_nanos', new.low_balance_nanos::text)::text);
  end if;
  return new;
end
$body$;

-- A budget that was set anew is another one, of which no event has been.
create or replace function tributary.budget_set() returns trigger language plpgsql as $body$
begin
  new.budget_event_begin_ms := null;
  new.budget_event_percent := 0;
  return new;
end
$body$;

-- What a key's requests were charged in the present period has reached 80 % or all of its budget.
create or replace function tributary.budget_reached() returns trigger language plpgsql as $body$
declare
  _before integer := case when new.budget_event_begin_ms is distinct from new.budget_begin_ms then 0
    else new.budget_event_percent end;
  _level integer := case when new.budget_spent_nanos >= new.budget_nanos then 100 else 80 end;
begin
  insert into tributary.outbox (type, account_id, key_id, entry, facts_json)
    select 'budget.reached', new.account_id, new.id, a.entries, json_build_object('percent', step,
        'budget_nanos', new.budget_nanos::text, 'spent_nanos', new.budget_spent_nanos::text, 'period', new.budget_period,
        'begins_at_ms', new.budget_begin_ms, 'ends_at_ms', new.budget_end_ms)::text
      from tributary.account a, unnest(array[80, 100]) as step
      where a.id = new.account_id and step > _before and step <= _level order by step;
  new.budget_event_begin_ms := new.budget_begin_ms;
  new.budget_event_percent := _level;
  return new;
end
$body$;
`;
