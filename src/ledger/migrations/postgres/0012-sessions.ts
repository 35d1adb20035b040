/** Sessions of operators at the console, and codes that open one. Released: never edited, a change is a new number. */
export const sessions = `
create table tributary.operator_session (
  id text collate "C" primary key,
  operator_id text collate "C" not null references tributary.operator (id),
  -- SHA-256 of what the cookie has.
  secret_hash bytea not null check (length(secret_hash) = 32),
  created_at_ms bigint not null,
  expires_at_ms bigint not null
);
create index operator_session_end on tributary.operator_session (expires_at_ms);

create table tributary.login_code (
  id text collate "C" primary key,
  operator_id text collate "C" not null references tributary.operator (id),
  secret_hash bytea not null check (length(secret_hash) = 32),
  created_at_ms bigint not null,
  expires_at_ms bigint not null
);
`;
