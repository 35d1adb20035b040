/** Sessions of operators at the console, and codes that open one. Released: never edited, a change is a new number. */
export const sessions = `
create table operator_session (
  id text primary key,
  operator_id text not null references operator (id),
  -- SHA-256 of what the cookie has.
  secret_hash blob not null check (length(secret_hash) = 32),
  created_at_ms integer not null,
  expires_at_ms integer not null
) strict;
create index operator_session_end on operator_session (expires_at_ms);

create table login_code (
  id text primary key,
  operator_id text not null references operator (id),
  secret_hash blob not null check (length(secret_hash) = 32),
  created_at_ms integer not null,
  expires_at_ms integer not null
) strict;
`;
