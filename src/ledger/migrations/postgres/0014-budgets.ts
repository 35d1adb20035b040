/** Budgets of keys, and to which period of one a request belongs. Released: never edited, a change is a new number. */
export const budgets = `
-- What the key may be charged in each period; null: it has no budget.
alter table tributary.api_key add column budget_nanos bigint check (budget_nanos >= 0);
alter table tributary.api_key add column budget_period text collate "C"
  check (budget_period in ('day', 'week', 'month', 'total'));
-- A name of the IANA database.
alter table tributary.api_key add column budget_timezone text collate "C";
-- The present period: from its begin on, before its end; null: it never ends.
alter table tributary.api_key add column budget_begin_ms bigint;
alter table tributary.api_key add column budget_end_ms bigint;
-- Of requests that were admitted in the present period: what they were charged, and what those that run hold.
alter table tributary.api_key add column budget_spent_nanos bigint not null default 0 check (budget_spent_nanos >= 0);
alter table tributary.api_key add column budget_held_nanos bigint not null default 0 check (budget_held_nanos >= 0);
-- Requests that were resolved by entries up to this one were counted by their times when the budget was set; null: the
-- present period began after that.
alter table tributary.api_key add column budget_set_sequence bigint;

-- Rows of keys that have a budget are written with each of their requests.
alter table tributary.api_key set (fillfactor = 50);

-- The begin of the period that the request belongs to; null: its key had no budget.
alter table tributary.reservation add column budget_begin_ms bigint;
`;
