/** Limits of accounts and keys; when a key may be used, and for what. Null: the service's setting. */
export const policies = `
alter table tributary.account
  add column concurrent_requests integer check (concurrent_requests >= 1),
  -- Of each of its keys.
  add column requests_per_minute integer check (requests_per_minute >= 1),
  add column output_tokens_max integer check (output_tokens_max >= 1);

alter table tributary.api_key
  add column scopes text not null default 'generate read' check (scopes in ('generate', 'read', 'generate read')),
  add column status text not null default 'active' check (status in ('active', 'paused')),
  add column expires_at_ms bigint,
  add column requests_per_minute integer check (requests_per_minute >= 1),
  add column output_tokens_max integer check (output_tokens_max >= 1),
  -- To the minute.
  add column last_used_at_ms bigint,
  -- The secret before the last rotation, and until when it is good.
  add column previous_hash bytea check (length(previous_hash) = 32),
  add column previous_until_ms bigint,
  add check ((previous_until_ms is null) = (previous_hash is null));
`;
