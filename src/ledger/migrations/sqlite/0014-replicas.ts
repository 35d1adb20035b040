/** What operators may cancel, and the replicas that they see. Released: never edited, a change is a new number. */
export const replicas = `
-- The operator who cancelled the request while it ran; null: it was not.
alter table reservation add column cancelled_by text;

-- What each replica says of itself, and who asked it to drain.
create table replica (
  id text primary key,
  started_at_ms integer not null,
  seen_at_ms integer not null,
  drain_asked_by text,
  facts_json text not null
) strict;
`;
