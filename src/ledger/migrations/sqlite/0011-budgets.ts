/** Budgets of keys, and to which period of one a request belongs. Released: never edited, a change is a new number. */
export const budgets = `
-- What the key may be charged in each period; null: it has no budget.
alter table api_key add column budget_nanos integer check (budget_nanos >= 0);
alter table api_key add column budget_period text check (budget_period in ('day', 'week', 'month', 'total'));
-- A name of the IANA database.
alter table api_key add column budget_timezone text;
-- The present period: from its begin on, before its end; null: it never ends.
alter table api_key add column budget_begin_ms integer;
alter table api_key add column budget_end_ms integer;
-- Of requests that were admitted in the present period: what they were charged, and what those that run hold.
alter table api_key add column budget_spent_nanos integer not null default 0 check (budget_spent_nanos >= 0);
alter table api_key add column budget_held_nanos integer not null default 0 check (budget_held_nanos >= 0);
-- Requests that were resolved by entries up to this one were counted by their times when the budget was set; null: the
-- present period began after that.
alter table api_key add column budget_set_sequence integer;

-- The begin of the period that the request belongs to; null: its key had no budget.
alter table reservation add column budget_begin_ms integer;
`;
