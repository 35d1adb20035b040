/** Price lists with dates, and a price of cached input. Released: never edited, a change is a new number. */
export const prices = `
create table price_list (
  name text primary key,
  -- Counts its changes.
  version integer not null check (version >= 1),
  created_at_ms integer not null
) strict, without rowid;

-- What a list charges from a time on, until its next price. One that has begun is never changed.
create table price (
  list text not null references price_list (name),
  effective_from_ms integer not null,
  input_nanos_per_million integer not null check (input_nanos_per_million >= 0),
  -- null: as input.
  cached_input_nanos_per_million integer check (cached_input_nanos_per_million >= 0),
  output_nanos_per_million integer not null check (output_nanos_per_million >= 0),
  primary key (list, effective_from_ms)
) strict, without rowid;

-- null: the list \`default\`, which is the prices of the settings until there is one of that name.
alter table account add column price_list text;
-- null: \`default\`; of older versions the prices of their settings.
alter table reservation add column price_list text;
-- null: as input. The reservation was made at the dearer of both.
alter table reservation add column cached_input_nanos_per_million integer check (cached_input_nanos_per_million >= 0);
`;
