/** A version that knows no grants spends them too. Released: never edited, a change is a new number. */
export const grantSpent = `
-- This version's own change of a balance lowers what is left of grants in the same statement, and is left alone here.
create trigger grant_is_spent after update of balance_nanos on account
when new.balance_nanos < old.balance_nanos and new.grant_left_nanos > 0 and new.grant_left_nanos = old.grant_left_nanos
begin
  update account set grant_left_nanos = max(new.grant_left_nanos + new.balance_nanos - old.balance_nanos, 0)
    where id = new.id;
end;
`;
