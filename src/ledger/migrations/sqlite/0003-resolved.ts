/** Finds what ended in a time, of one account or of each. Released: never edited, a change is a new number. */
export const resolved = `
create index reservation_resolved on reservation (account_id, resolved_at_ms) where state <> 'open';
`;
