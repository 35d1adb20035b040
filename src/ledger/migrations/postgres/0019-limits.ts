/** `authorize` answers the limits in force too, which only a new function can. Released: never edited, a change is a new number. */
export const authorizeWithLimits = `
drop function if exists tributary.authorize_each(
  text[], text[], bytea[], bytea, text[], bigint, bigint, bigint[], integer, bigint);
drop function if exists tributary.authorize(text, text, bytea, bytea, text, bigint, bigint, bigint, bigint);
`;
