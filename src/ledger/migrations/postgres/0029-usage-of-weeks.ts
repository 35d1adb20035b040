import { fillWeeks } from "../week-sums.ts";

/** Sums of usage by week, of keys with labels. Released: never edited, a change is a new number. */
export const usageOfWeeks = `
-- What ended within seven days of UTC from a Thursday on; the empty label is that of requests without.
create table tributary.usage_week (
  like tributary.usage_day,
  label text collate "C" not null,
  primary key (account_id, begin_ms, key_id, format, label)
);
${fillWeeks("tributary.")}
`;
