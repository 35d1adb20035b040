/** For whom of an account's users a request was. Released: never edited, a change is a new number. */
export const labels = `
alter table tributary.reservation
  add column label text collate "C",
  -- The rows that are there have null, so that none is read for the check.
  add constraint reservation_label_check check (length(label) between 1 and 128) not valid;
`;
