/** What accounts are granted in each period. Released: never edited, a change is a new number. */
export const grants = `
-- What the account is granted at the begin of each period; null: nothing.
alter table tributary.account add column grant_nanos bigint check (grant_nanos > 0);
alter table tributary.account add column grant_every text collate "C" check (grant_every in ('day', 'week', 'month'));
-- A name of the IANA database.
alter table tributary.account add column grant_timezone text collate "C";
-- 1: what is left of a period goes on into the next.
alter table tributary.account add column grant_carry_over integer check (grant_carry_over in (0, 1));
-- When the next grant is due.
alter table tributary.account add column grant_next_ms bigint;
-- What of the balance is left of grants: charges and what is taken back lower it first.
alter table tributary.account add column grant_left_nanos bigint not null default 0 check (grant_left_nanos >= 0);
create index account_grant on tributary.account (grant_next_ms) where grant_next_ms is not null;
`;
