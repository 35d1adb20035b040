/** Who runs a request, whether it lives, and for how long its word holds. Released: never edited, a change is a new number. */
export const owners = `
-- The process that reserved; null: it was one that did not say so.
alter table tributary.reservation add column owner text collate "C";
-- How far each renewal reaches: no process that lives has a lease that ends later than that from now.
alter table tributary.reservation add column lease_ms bigint check (lease_ms > 0);

-- Processes that say that they live: each keeps a lock of its session with its number. Not logged: after a crash of the
-- server, and on a standby that has taken over, nothing is known, and leases alone count.
create unlogged table tributary.process (
  id text collate "C" primary key,
  number integer not null check (number >= 0),
  -- Of the server whose session the lock is of: a restart ends all sessions, which tells nothing about processes.
  server_started timestamptz not null,
  -- Since when others have missed the lock; null: it is held.
  missed_ms bigint
);
`;
