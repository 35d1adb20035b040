/**
 * Rate tickets, in a file of their own: they are worth nothing after a minute, so they need no sync, and a file of
 * another shape is simply made anew.
 */
export const rateWindow = {
  version: 2,
  schema: `
drop table if exists rate.ticket;
drop table if exists rate.key_tickets;
create table rate.ticket (
  key_id text not null,
  at_ms integer not null,
  id text not null,
  primary key (key_id, at_ms, id)
) strict, without rowid;

-- How many tickets each key has, so that no request counts them.
create table rate.key_tickets (
  key_id text primary key,
  held integer not null
) strict, without rowid;
create trigger rate.ticket_taken after insert on ticket begin
  insert into key_tickets values (new.key_id, 1) on conflict (key_id) do update set held = held + 1;
end;
create trigger rate.ticket_gone after delete on ticket begin
  update key_tickets set held = held - 1 where key_id = old.key_id;
end;
`,
} as const;
