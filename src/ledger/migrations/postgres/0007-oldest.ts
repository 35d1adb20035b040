/** Which versions may still open what a newer one left. Released: never edited, a change is a new number. */
export const oldest = `
-- The lowest schema number whose programs may open the ledger after this step, though its number is higher than theirs.
alter table tributary.migration add column oldest integer check (oldest >= 1);
`;
