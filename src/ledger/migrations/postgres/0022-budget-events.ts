/** Events of budgets, and what finds keys that are about to end. Released: never edited, a change is a new number. */
export const budgetEvents = `
-- The period of the budget of which events have said how far it is spent, and how far that was, in per cent.
alter table tributary.api_key add column budget_event_begin_ms bigint;
alter table tributary.api_key add column budget_event_percent integer not null default 0;

-- What they do is in postgres/events.sql.ts, whose functions are made after this step.
create function tributary.budget_reached() returns trigger language plpgsql as $body$
begin
  return new;
end
$body$;

-- 80 % and 100 %, each once a period. A fifth is taken away, since 80 times the largest budget is no number any more.
create trigger budget_reached before update of budget_spent_nanos on tributary.api_key for each row
  when (new.budget_spent_nanos >= new.budget_nanos - new.budget_nanos / 5
    and (new.budget_event_begin_ms is distinct from new.budget_begin_ms
      or new.budget_event_percent < case when new.budget_spent_nanos >= new.budget_nanos then 100 else 80 end))
  execute function tributary.budget_reached();

create function tributary.budget_set() returns trigger language plpgsql as $body$
begin
  return new;
end
$body$;

-- A budget that was set anew is another one. By its name it comes before the trigger above.
create trigger a_budget_is_set before update of budget_nanos, budget_period, budget_timezone on tributary.api_key for each row
  when (new.budget_nanos is distinct from old.budget_nanos or new.budget_period is distinct from old.budget_period
    or new.budget_timezone is distinct from old.budget_timezone)
  execute function tributary.budget_set();

create index api_key_expires on tributary.api_key (expires_at_ms) where expires_at_ms is not null;
`;
