/** Which versions may still open what a newer one left. Released: never edited, a change is a new number. */
export const oldest = `
-- One row: the lowest schema number whose programs may open this file though its own number is higher than theirs.
create table schema_readers (oldest integer not null check (oldest >= 1)) strict;
insert into schema_readers (oldest) values (5);
`;
