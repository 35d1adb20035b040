/**
 * Rate tickets, in a file of their own: they are worth nothing after a minute, so they need no sync, and a file of
 * another shape is simply made anew.
 */
export const rateWindow = {
  version: 1,
  schema: `
create table rate.ticket (
  key_id text not null,
  at_ms integer not null,
  id text not null,
  primary key (key_id, at_ms, id)
) strict, without rowid;
`,
} as const;
