/** What the rows of the tables below add up. Buckets of latencies are null where they are empty. */
const sums = `
  requests integer not null,
  input_tokens bigint not null, cached_input_tokens bigint not null,
  output_tokens bigint not null, reasoning_tokens bigint not null,
  charged_nanos bigint not null,
  completed integer not null, cancelled integer not null, cancelled_before_output integer not null,
  refused integer not null, failed integer not null, cancelled_by_operator integer not null,
  lease_lost integer not null,
  first_output_0 integer, first_output_1 integer, first_output_2 integer, first_output_3 integer, first_output_4 integer, first_output_5 integer,
  first_output_6 integer, first_output_7 integer, first_output_8 integer, first_output_9 integer, first_output_10 integer, first_output_11 integer,
  first_output_12 integer, first_output_13 integer, first_output_14 integer, first_output_15 integer, first_output_16 integer, first_output_17 integer,
  total_0 integer, total_1 integer, total_2 integer, total_3 integer, total_4 integer, total_5 integer,
  total_6 integer, total_7 integer, total_8 integer, total_9 integer, total_10 integer, total_11 integer,
  total_12 integer, total_13 integer, total_14 integer, total_15 integer, total_16 integer, total_17 integer,`;

/** Sums of usage that are kept, and how far they go. Released: never edited, a change is a new number. */
export const usage = `
-- Finds what an account's entries resolved after one of them.
create index reservation_resolution on tributary.reservation (account_id, resolved_sequence) where state <> 'open';

-- The sums of an account cover what was resolved by its entries up to this one, and nothing else.
create table tributary.usage_progress (
  account_id text collate "C" primary key,
  summed_sequence bigint not null check (summed_sequence >= 0)
);

-- What ended within a quarter of an hour.
create table tributary.usage_quarter (
  account_id text collate "C" not null,
  -- Milliseconds since 1970.
  begin_ms bigint not null,
  key_id text collate "C" not null,
  format text collate "C" not null,${sums}
  primary key (account_id, begin_ms, key_id, format)
);

-- What ended within a day of UTC.
create table tributary.usage_day (
  account_id text collate "C" not null,
  -- Milliseconds since 1970.
  begin_ms bigint not null,
  key_id text collate "C" not null,
  format text collate "C" not null,${sums}
  primary key (account_id, begin_ms, key_id, format)
);

-- What ended within a day of UTC by label; the empty one is that of requests without.
create table tributary.usage_label (
  account_id text collate "C" not null,
  -- Milliseconds since 1970.
  begin_ms bigint not null,
  label text collate "C" not null,${sums}
  primary key (account_id, begin_ms, label)
);
`;
