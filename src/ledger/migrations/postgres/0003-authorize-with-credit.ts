/**
 * Authorization that looks at the balance too. Beside the function without, which it calls and which replicas of the
 * version before go on using while they are replaced one by one.
 * Released: never edited, a change is a new number.
 */
export const authorizeWithCredit = `
-- As before, then: a balance below _least pays for no request, which its ticket counts all the same.
create function tributary.authorize(
  _account text, _key text, _hash bytea, _nonce bytea, _ticket text, _limit bigint, _window_ms bigint, _at_ms bigint,
  _least bigint,
  out verdict text, out live bigint, out newest bigint, out fits_at bigint, out now bigint,
  out balance bigint, out held bigint
) language plpgsql as $body$
begin
  select a.verdict, a.live, a.newest, a.fits_at, a.now into verdict, live, newest, fits_at, now
    from tributary.authorize(_account, _key, _hash, _nonce, _ticket, _limit, _window_ms, _at_ms) a;
  if verdict = 'known' and _least > 0 then
    select a.balance_nanos, a.held_nanos into balance, held from tributary.account a where a.id = _account;
    if balance < _least then verdict := 'credit'; end if;
  end if;
end
$body$;
`;
