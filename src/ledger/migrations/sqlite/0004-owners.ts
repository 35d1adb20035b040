/** Who runs a request, and for how long its word holds. Released: never edited, a change is a new number. */
export const owners = `
-- The process that reserved; null: it was one that did not say so.
alter table reservation add column owner text;
-- How far each renewal reaches: no process that lives has a lease that ends later than that from now.
alter table reservation add column lease_ms integer check (lease_ms > 0);
`;
