/** Price lists with dates, and a price of cached input. Released: never edited, a change is a new number. */
export const prices = `
create table tributary.price_list (
  name text collate "C" primary key,
  -- Counts its changes.
  version bigint not null check (version >= 1),
  created_at_ms bigint not null
);

-- What a list charges from a time on, until its next price. One that has begun is never changed.
create table tributary.price (
  list text collate "C" not null references tributary.price_list (name),
  effective_from_ms bigint not null,
  input_nanos_per_million bigint not null check (input_nanos_per_million >= 0),
  -- null: as input.
  cached_input_nanos_per_million bigint check (cached_input_nanos_per_million >= 0),
  output_nanos_per_million bigint not null check (output_nanos_per_million >= 0),
  primary key (list, effective_from_ms)
);

-- null: the list \`default\`, which is the prices of the settings until there is one of that name.
alter table tributary.account add column price_list text collate "C";
-- null: \`default\`; of older versions the prices of their settings.
alter table tributary.reservation add column price_list text collate "C";
-- null: as input. The reservation was made at the dearer of both.
alter table tributary.reservation
  add column cached_input_nanos_per_million bigint,
  -- The rows that are there have null, so that none is read for the check.
  add constraint reservation_cached_input_nanos_per_million_check check (cached_input_nanos_per_million >= 0) not valid;
`;
