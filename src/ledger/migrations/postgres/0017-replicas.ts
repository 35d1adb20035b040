/** What operators may cancel, and the replicas that they see. Released: never edited, a change is a new number. */
export const replicas = `
-- The operator who cancelled the request while it ran; null: it was not.
alter table tributary.reservation add column cancelled_by text collate "C";

-- What each replica says of itself, and who asked it to drain.
create table tributary.replica (
  id text collate "C" primary key,
  started_at_ms bigint not null,
  seen_at_ms bigint not null,
  drain_asked_by text collate "C",
  facts_json text not null
);
`;
