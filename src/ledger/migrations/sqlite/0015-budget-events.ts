/** Events of budgets, and what finds keys that are about to end. Released: never edited, a change is a new number. */
export const budgetEvents = `
-- The period of the budget of which events have said how far it is spent, and how far that was, in per cent.
alter table api_key add column budget_event_begin_ms integer;
alter table api_key add column budget_event_percent integer not null default 0;

-- 80 % and 100 %, each once a period. A fifth is taken away, since 80 times the largest budget is no number any more. A
-- budget that was set anew is another one.
create trigger budget_reached after update of budget_spent_nanos on api_key
when new.budget_spent_nanos >= new.budget_nanos - new.budget_nanos / 5
  and (new.budget_event_begin_ms is not new.budget_begin_ms
    or new.budget_event_percent < iif(new.budget_spent_nanos >= new.budget_nanos, 100, 80)
    or new.budget_nanos is not old.budget_nanos or new.budget_period is not old.budget_period
    or new.budget_timezone is not old.budget_timezone)
begin
  update api_key set budget_event_percent = 0 where account_id = new.account_id and id = new.id
    and (budget_event_begin_ms is not new.budget_begin_ms or new.budget_nanos is not old.budget_nanos
      or new.budget_period is not old.budget_period or new.budget_timezone is not old.budget_timezone);
  insert into outbox (type, account_id, key_id, entry, facts_json)
    select 'budget.reached', new.account_id, new.id, account.entries, json_object('percent', step.percent,
        'budget_nanos', cast(new.budget_nanos as text), 'spent_nanos', cast(new.budget_spent_nanos as text),
        'period', new.budget_period, 'begins_at_ms', new.budget_begin_ms, 'ends_at_ms', new.budget_end_ms)
      from account, api_key, (select 80 as percent union all select 100) as step
      where account.id = new.account_id and api_key.account_id = new.account_id and api_key.id = new.id
        and (step.percent = 80 or new.budget_spent_nanos >= new.budget_nanos)
        and api_key.budget_event_percent < step.percent
      order by step.percent;
  update api_key set budget_event_begin_ms = new.budget_begin_ms,
      budget_event_percent = iif(new.budget_spent_nanos >= new.budget_nanos, 100, 80)
    where account_id = new.account_id and id = new.id;
end;

create trigger budget_set after update of budget_nanos, budget_period, budget_timezone on api_key
when coalesce(new.budget_spent_nanos < new.budget_nanos - new.budget_nanos / 5, 1)
  and (new.budget_nanos is not old.budget_nanos or new.budget_period is not old.budget_period
    or new.budget_timezone is not old.budget_timezone)
begin
  update api_key set budget_event_begin_ms = null, budget_event_percent = 0
    where account_id = new.account_id and id = new.id;
end;

create index api_key_expires on api_key (expires_at_ms) where expires_at_ms is not null;
`;
