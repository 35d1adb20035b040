/** Limits of accounts and keys; when a key may be used, and for what. Null: the service's setting. */
export const policies = `
alter table account add column concurrent_requests integer check (concurrent_requests >= 1);
-- Of each of its keys.
alter table account add column requests_per_minute integer check (requests_per_minute >= 1);
alter table account add column output_tokens_max integer check (output_tokens_max >= 1);

alter table api_key add column scopes text not null default 'generate read'
  check (scopes in ('generate', 'read', 'generate read'));
alter table api_key add column status text not null default 'active' check (status in ('active', 'paused'));
alter table api_key add column expires_at_ms integer;
alter table api_key add column requests_per_minute integer check (requests_per_minute >= 1);
alter table api_key add column output_tokens_max integer check (output_tokens_max >= 1);
-- To the minute.
alter table api_key add column last_used_at_ms integer;
-- The secret before the last rotation, and until when it is good.
alter table api_key add column previous_hash blob check (length(previous_hash) = 32);
alter table api_key add column previous_until_ms integer check ((previous_until_ms is null) = (previous_hash is null));
`;
