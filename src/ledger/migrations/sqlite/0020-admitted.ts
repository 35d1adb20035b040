/** Finds the receipts of all accounts, newest first. Released: never edited, a change is a new number. */
export const admitted = `
create index reservation_admitted on reservation (admitted_at_ms);
`;
