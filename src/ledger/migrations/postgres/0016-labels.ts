/** For whom of an account's users a request was. Released: never edited, a change is a new number. */
export const labels = `
alter table tributary.reservation add column label text collate "C" check (length(label) between 1 and 128);
`;
