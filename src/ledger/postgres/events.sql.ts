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
`;
