/** "TRIP", the first number of every lock by which a process says that it lives. */
export const presenceLockClass = 1_414_678_864;

/**
 * Which processes live. On SQLite the kernel says it: `sqlite/presence.ts`.
 */
export const presenceFunctions = `
-- Whether the session of a process is there, which holds a lock with its number.
create or replace function tributary.is_heard(_number integer) returns boolean language sql volatile as $body$
  select exists (select 1 from pg_catalog.pg_locks l where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
    and l.classid = ${String(presenceLockClass)}::oid and l.objid = _number::oid
    and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))
$body$;

-- A process (null: a command) says that it lives, and looks for processes that do not. known: until now this process
-- counted as living; dead: some process is dead for sure, so that what it held is to be given back; again_ms: in how many
-- milliseconds another one will be, unless it is heard again (null: all others are heard, or are dead).
create or replace function tributary.look_round(
  _process text, _number integer, _grace_ms bigint, _at_ms bigint, out known boolean, out dead boolean,
  out again_ms integer
) language plpgsql as $body$
declare
  _now bigint := coalesce(_at_ms, tributary.now_ms());
  _started timestamptz := pg_postmaster_start_time();
begin
  known := _process is null or exists (select 1 from tributary.process p
    where p.id = _process and p.missed_ms is null and p.server_started = _started and p.number = _number);
  if not known then
    insert into tributary.process (id, number, server_started) values (_process, _number, _started)
      on conflict (id) do update set number = _number, server_started = _started, missed_ms = null;
  end if;
  -- Most looks change nothing.
  update tributary.process p set missed_ms = case when tributary.is_heard(p.number) then null else _now end
    where p.id is distinct from _process and p.server_started = _started
      and ((p.missed_ms is null or p.missed_ms > _now) <> tributary.is_heard(p.number));
  select coalesce(bool_or(l.left_ms <= 0), false), min(l.left_ms) filter (where l.left_ms > 0) into dead, again_ms
    from (select p.missed_ms + _grace_ms - _now as left_ms from tributary.process p where p.server_started = _started) l;
  -- A dead process is forgotten an hour later, when nothing is left to give back for it.
  delete from tributary.process p where (p.missed_ms <= _now - 3600000 or p.server_started <> _started)
    and not tributary.is_heard(p.number)
    and not exists (select 1 from tributary.reservation r where r.state = 'open' and r.owner = p.id);
end
$body$;

-- The same, as replicas of the schemas before 30 ask.
create or replace function tributary.look(
  _process text, _number integer, _grace_ms bigint, _at_ms bigint, out known boolean, out dead boolean
) language plpgsql as $body$
begin
  select l.known, l.dead into known, dead from tributary.look_round(_process, _number, _grace_ms, _at_ms) l;
end
$body$;

-- Whether an owner is dead for sure.
create or replace function tributary.is_dead(_owner text, _grace_ms bigint, _now bigint) returns boolean
language sql volatile as $body$
  select exists (select 1 from tributary.process p where p.id = _owner and p.missed_ms <= _now - _grace_ms
    and p.server_started = pg_postmaster_start_time() and not tributary.is_heard(p.number))
$body$;
`;
