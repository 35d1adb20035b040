/** Finds what ended in a time, of one account or of each. Released: never edited, a change is a new number. */
export const resolved = `
-- A look-up of one request of an account cannot use it, as it leaves out what is open.
create index reservation_resolved on tributary.reservation (account_id, resolved_at_ms) where state <> 'open';
`;
