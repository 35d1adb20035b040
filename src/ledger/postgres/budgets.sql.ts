/**
 * What keys' budgets hold and have spent, under the locks of their accounts. The same rules in TypeScript: `sqlite/budgets.ts`.
 */
export const budgetFunctions = `
-- Adds what was reserved to what the budgets of the keys hold: a key is written once. A begin of null is of a key without one.
create or replace function tributary.hold_budgets(_accounts text[], _keys text[], _begins bigint[], _nanos bigint[])
returns void language plpgsql as $body$
begin
  -- Most requests are of keys without a budget.
  if cardinality(array_remove(_begins, null)) = 0 then return; end if;
  update tributary.api_key k set budget_held_nanos = k.budget_held_nanos + q.nanos
    from (select u.account, u.key, sum(u.nanos)::bigint as nanos
        from unnest(_accounts, _keys, _begins, _nanos) as u(account, key, begun, nanos)
        where u.begun is not null group by u.account, u.key) q
    where k.account_id = q.account and k.id = q.key;
end
$body$;

-- Ends what requests held that were admitted in the periods with these begins; what was admitted in a period that is over
-- counts in none any more.
create or replace function tributary.resolve_budgets(
  _accounts text[], _keys text[], _begins bigint[], _reserved bigint[], _charged bigint[]
) returns void language plpgsql as $body$
begin
  if cardinality(array_remove(_begins, null)) = 0 then return; end if;
  update tributary.api_key k set budget_held_nanos = k.budget_held_nanos - q.reserved,
      budget_spent_nanos = k.budget_spent_nanos + q.charged
    from (select u.account, u.key, u.begun, sum(u.reserved)::bigint as reserved, sum(u.charged)::bigint as charged
        from unnest(_accounts, _keys, _begins, _reserved, _charged) as u(account, key, begun, reserved, charged)
        where u.begun is not null group by u.account, u.key, u.begun) q
    where k.account_id = q.account and k.id = q.key and k.budget_begin_ms = q.begun;
end
$body$;

-- Begins the next period of a key's budget where the last one is over. Nothing happens where another call has begun it, or
-- where the period that is brought is over too.
create or replace function tributary.begin_period(
  _account text, _key text, _begin_ms bigint, _end_ms bigint, _at_ms bigint
) returns void language plpgsql as $body$
declare
  _now bigint;
begin
  perform 1 from tributary.account a where a.id = _account for no key update;
  _now := coalesce(_at_ms, tributary.now_ms());
  update tributary.api_key k set budget_begin_ms = _begin_ms, budget_end_ms = _end_ms, budget_spent_nanos = 0,
      budget_held_nanos = 0, budget_set_sequence = null
    where k.account_id = _account and k.id = _key and k.budget_end_ms <= _now and _end_ms > _now;
end
$body$;
`;
