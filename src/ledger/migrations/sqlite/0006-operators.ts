/** Operators, the log of what they changed, and answers kept for repeats. Released: never edited, a change is a new number. */
export const operators = `
create table operator (
  id text primary key check (id glob 'oper_*'),
  name text not null,
  role text not null check (role in ('owner', 'billing', 'viewer')),
  created_at_ms integer not null,
  revoked_at_ms integer
) strict;
create unique index operator_name on operator (name) where revoked_at_ms is null;

create table operator_token (
  id text primary key,
  operator_id text not null references operator (id),
  -- SHA-256 of the whole token; the token itself is nowhere.
  secret_hash blob not null check (length(secret_hash) = 32),
  created_at_ms integer not null,
  expires_at_ms integer
) strict;

-- Append-only: who changed what, with what it was before and after, as JSON.
create table audit (
  sequence integer primary key,
  at_ms integer not null,
  actor text not null,
  action text not null,
  target text not null,
  before_json text,
  after_json text
) strict;

create trigger audit_is_never_changed before update on audit
begin select raise(abort, 'the audit log is never changed'); end;

create trigger audit_is_never_removed before delete on audit
begin select raise(abort, 'the audit log is never removed'); end;

-- What a change answered, for repeats under the same key of the same actor and route.
create table kept_answer (
  actor text not null,
  route text not null,
  idempotency_key text not null,
  body_hash blob not null check (length(body_hash) = 32),
  answer_json text not null,
  created_at_ms integer not null,
  primary key (actor, route, idempotency_key)
) strict, without rowid;
create index kept_answer_created on kept_answer (created_at_ms);
`;
