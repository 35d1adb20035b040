/** Finds receipts, newest first. Released: never edited, a change is a new number. */
export const admitted = `
-- Of one account too, where it has many of all receipts.
create index reservation_admitted on tributary.reservation (admitted_at_ms);
`;
