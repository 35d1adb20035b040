/** Checks of what each request writes, as few and as short as can be. Released: never edited, a change is a new number. */
export const shorterChecks = `
-- The server reads the text of every check of a table anew for each statement that writes a row of it. What moves with a
-- request is one short check a table; what operators set is looked at where it is set.
alter table tributary.account
  drop constraint account_id_check,
  drop constraint account_status_check,
  drop constraint account_balance_nanos_check,
  drop constraint account_check,
  drop constraint account_check1,
  drop constraint account_entries_check,
  drop constraint account_head_check,
  drop constraint account_concurrent_requests_check,
  drop constraint account_requests_per_minute_check,
  drop constraint account_output_tokens_max_check,
  drop constraint account_low_balance_nanos_check,
  drop constraint account_balance_low_check,
  drop constraint account_exhausted_check,
  drop constraint account_grant_nanos_check,
  drop constraint account_grant_every_check,
  drop constraint account_grant_carry_over_check,
  drop constraint account_grant_left_nanos_check,
  -- The last line: no code path may overspend, whatever its bug. What runs is not below zero, and not zero where something
  -- is held. The rows that are there have kept stricter checks, so that none is read for these.
  add constraint account_moves_check check (
    held_nanos between 0 and balance_nanos and running >= (held_nanos > 0)::integer
    and least(entries, grant_left_nanos) >= 0 and length(head) = 32) not valid;

create function tributary.check_account() returns trigger language plpgsql as $body$
begin
  if not starts_with(new.id, 'acct_') or new.status not in ('active', 'disabled')
    or new.concurrent_requests < 1 or new.requests_per_minute < 1 or new.output_tokens_max < 1
    or new.low_balance_nanos < 0 or new.balance_low not in (0, 1) or new.exhausted not in (0, 1)
    or new.grant_nanos <= 0 or new.grant_every not in ('day', 'week', 'month') or new.grant_carry_over not in (0, 1)
  then raise exception 'a column of account % has a value that it cannot have', new.id using errcode = 'check_violation';
  end if;
  return new;
end
$body$;

create trigger account_is_set before insert or update of id, status, concurrent_requests, requests_per_minute,
    output_tokens_max, low_balance_nanos, balance_low, exhausted, grant_nanos, grant_every, grant_carry_over
  on tributary.account for each row execute function tributary.check_account();

alter table tributary.reservation
  drop constraint reservation_state_check,
  drop constraint reservation_input_bound_check,
  drop constraint reservation_allowance_check,
  drop constraint reservation_input_nanos_per_million_check,
  drop constraint reservation_output_nanos_per_million_check,
  drop constraint reservation_cached_input_nanos_per_million_check,
  drop constraint reservation_reserved_nanos_check,
  drop constraint reservation_check,
  drop constraint reservation_check1,
  drop constraint reservation_check2,
  drop constraint reservation_check3,
  drop constraint reservation_check4,
  drop constraint reservation_head_check,
  drop constraint reservation_lease_ms_check,
  drop constraint reservation_label_check,
  drop constraint reservation_refunded_nanos_check,
  -- What is null counts as nothing for least. A charge, an outcome and the time of the end are there, all of them, where
  -- the reservation is not open.
  add constraint reservation_check check (
    least(input_bound, allowance - 1, lease_ms - 1, input_nanos_per_million, cached_input_nanos_per_million,
      output_nanos_per_million, reserved_nanos, charged_nanos, reserved_nanos - charged_nanos, refunded_nanos) >= 0
    and num_nulls(charged_nanos, outcome, resolved_at_ms)
      = case state when 'open' then 3 when 'settled' then 0 when 'expired' then 0 else -1 end
    and (state <> 'expired' or charged_nanos = 0) and length(head) = 32
    and coalesce(length(label), 1) between 1 and 128) not valid;
`;
