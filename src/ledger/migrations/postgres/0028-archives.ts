/** What is kept of receipts that were archived. Released: never edited, a change is a new number. */
export const archives = `
-- What the archived receipts of an account come to: those that its entries up to this one resolved, and no others.
create table tributary.archive (
  account_id text collate "C" primary key,
  sequence bigint not null check (sequence >= 1),
  -- Of the chain over their lines, in hexadecimal.
  hash text collate "C" not null check (length(hash) = 64),
  -- Requests that ended from then on are not among them.
  until_ms bigint not null,
  requests bigint not null,
  input_tokens bigint not null, cached_input_tokens bigint not null,
  output_tokens bigint not null, reasoning_tokens bigint not null,
  charged_nanos bigint not null,
  completed bigint not null, cancelled bigint not null, cancelled_before_output bigint not null,
  refused bigint not null, failed bigint not null, cancelled_by_operator bigint not null,
  lease_lost bigint not null,
  first_output_0 bigint, first_output_1 bigint, first_output_2 bigint, first_output_3 bigint, first_output_4 bigint, first_output_5 bigint,
  first_output_6 bigint, first_output_7 bigint, first_output_8 bigint, first_output_9 bigint, first_output_10 bigint, first_output_11 bigint,
  first_output_12 bigint, first_output_13 bigint, first_output_14 bigint, first_output_15 bigint, first_output_16 bigint, first_output_17 bigint,
  total_0 bigint, total_1 bigint, total_2 bigint, total_3 bigint, total_4 bigint, total_5 bigint,
  total_6 bigint, total_7 bigint, total_8 bigint, total_9 bigint, total_10 bigint, total_11 bigint,
  total_12 bigint, total_13 bigint, total_14 bigint, total_15 bigint, total_16 bigint, total_17 bigint
);

-- Which of them each file has, by the chain's hashes before and after.
create table tributary.archive_file (
  account_id text collate "C" not null,
  after_sequence bigint not null,
  from_hash text collate "C" not null check (length(from_hash) = 64),
  sequence bigint not null,
  hash text collate "C" not null check (length(hash) = 64),
  receipts bigint not null,
  file text collate "C" not null,
  at_ms bigint not null,
  primary key (account_id, after_sequence)
);
`;
