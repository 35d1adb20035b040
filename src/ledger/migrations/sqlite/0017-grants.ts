/** What accounts are granted in each period. Released: never edited, a change is a new number. */
export const grants = `
-- What the account is granted at the begin of each period; null: nothing.
alter table account add column grant_nanos integer check (grant_nanos > 0);
alter table account add column grant_every text check (grant_every in ('day', 'week', 'month'));
-- A name of the IANA database.
alter table account add column grant_timezone text;
-- 1: what is left of a period goes on into the next.
alter table account add column grant_carry_over integer check (grant_carry_over in (0, 1));
-- When the next grant is due.
alter table account add column grant_next_ms integer;
-- What of the balance is left of grants: charges and what is taken back lower it first.
alter table account add column grant_left_nanos integer not null default 0 check (grant_left_nanos >= 0);
create index account_grant on account (grant_next_ms) where grant_next_ms is not null;
`;
