/** What is kept of receipts that were archived. Released: never edited, a change is a new number. */
export const archives = `
-- What the archived receipts of an account come to: those that its entries up to this one resolved, and no others.
create table archive (
  account_id text primary key,
  sequence integer not null check (sequence >= 1),
  -- Of the chain over their lines, in hexadecimal.
  hash text not null check (length(hash) = 64),
  -- Requests that ended from then on are not among them.
  until_ms integer not null,
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
  total_12 integer, total_13 integer, total_14 integer, total_15 integer, total_16 integer, total_17 integer
) strict, without rowid;

-- Which of them each file has, by the chain's hashes before and after.
create table archive_file (
  account_id text not null,
  after_sequence integer not null,
  from_hash text not null check (length(from_hash) = 64),
  sequence integer not null,
  hash text not null check (length(hash) = 64),
  receipts integer not null,
  file text not null,
  at_ms integer not null,
  primary key (account_id, after_sequence)
) strict, without rowid;
`;
