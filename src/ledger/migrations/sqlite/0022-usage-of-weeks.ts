import { fillWeeks } from "../week-sums.ts";

/** Sums of usage by week, of keys with labels. Released: never edited, a change is a new number. */
export const usageOfWeeks = `
-- What ended within seven days of UTC from a Thursday on; the empty label is that of requests without.
create table usage_week (
  account_id text not null,
  -- Milliseconds since 1970.
  begin_ms integer not null,
  key_id text not null,
  format text not null,
  label text not null,
  requests integer not null,
  input_tokens integer not null, cached_input_tokens integer not null,
  output_tokens integer not null, reasoning_tokens integer not null,
  charged_nanos integer not null,
  completed integer not null, cancelled integer not null, cancelled_before_output integer not null,
  refused integer not null, failed integer not null, cancelled_by_operator integer not null,
  lease_lost integer not null,
  first_output_0 integer, first_output_1 integer, first_output_2 integer, first_output_3 integer, first_output_4 integer, first_output_5 integer,
  first_output_6 integer, first_output_7 integer, first_output_8 integer, first_output_9 integer, first_output_10 integer, first_output_11 integer,
  first_output_12 integer, first_output_13 integer, first_output_14 integer, first_output_15 integer, first_output_16 integer, first_output_17 integer,
  total_0 integer, total_1 integer, total_2 integer, total_3 integer, total_4 integer, total_5 integer,
  total_6 integer, total_7 integer, total_8 integer, total_9 integer, total_10 integer, total_11 integer,
  total_12 integer, total_13 integer, total_14 integer, total_15 integer, total_16 integer, total_17 integer,
  primary key (account_id, begin_ms, key_id, format, label)
) strict, without rowid;
${fillWeeks("")}
`;
