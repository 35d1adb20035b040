/** Events, where they are delivered, and what of an account causes them. Released: never edited, a change is a new number. */
export const events = `
-- null: no event says that the balance is low.
alter table account add column low_balance_nanos integer check (low_balance_nanos >= 0);
-- 1: the balance has fallen below it, and has not been above it since.
alter table account add column balance_low integer not null default 0 check (balance_low in (0, 1));
-- 1: a request was refused for credit, and none was added since.
alter table account add column exhausted integer not null default 0 check (exhausted in (0, 1));
-- The end of the key that an event has announced.
alter table api_key add column expiring_event_ms integer;

-- What has happened, written in the transaction in which it does, by whatever version. The deliverer gives it a position.
create table outbox (
  sequence integer primary key autoincrement,
  type text not null,
  account_id text,
  key_id text,
  -- The entry of the account that caused it, whose time it has.
  entry integer,
  at_ms integer,
  facts_json text not null
) strict;

-- What has happened, in the order in which it is given out: position has no gaps and is never given out of order.
create table event (
  position integer primary key,
  id text not null unique check (id glob 'evt_*'),
  at_ms integer not null,
  type text not null,
  account_id text,
  key_id text,
  facts_json text not null
) strict;

-- One row: who gives out positions and delivers, until when, and the last position.
create table event_desk (
  id integer primary key check (id = 1),
  holder text,
  until_ms integer not null default 0,
  positions integer not null check (positions >= 0)
) strict;

create table webhook (
  id text primary key check (id glob 'hook_*'),
  url text not null,
  description text not null,
  -- The types of events that it gets, as JSON; null: all.
  types_json text,
  status text not null check (status in ('active', 'paused', 'deleted')),
  -- In the clear, since it signs: whoever reads this table can sign as this service.
  secret blob not null check (length(secret) between 24 and 64),
  -- The secret before, which signs too until then.
  old_secret blob check (length(old_secret) between 24 and 64),
  old_secret_until_ms integer,
  failing_since_ms integer,
  created_at_ms integer not null,
  version integer not null default 1
) strict;

-- One event for one webhook.
create table delivery (
  webhook_id text not null references webhook (id),
  position integer not null,
  event_id text not null,
  account_id text,
  state text not null check (state in ('pending', 'delivered', 'failed')),
  tries integer not null default 0 check (tries >= 0),
  -- When it is tried next.
  next_at_ms integer not null,
  tried_at_ms integer,
  status_code integer,
  error text,
  duration_ms integer,
  primary key (webhook_id, position)
) strict, without rowid;
create index delivery_pending on delivery (webhook_id, next_at_ms) where state = 'pending';

-- One row: whether the deployment is up, over all replicas.
create table deployment_state (
  id integer primary key check (id = 1),
  state text not null check (state in ('up', 'down')),
  since_ms integer not null,
  -- Since when, and by whom, the contrary is seen.
  doubted_since_ms integer,
  doubted_by text
) strict;

create trigger account_falls_low after update of balance_nanos on account
when new.balance_low = 0 and new.balance_nanos < new.low_balance_nanos
begin
  update account set balance_low = 1 where id = new.id;
  insert into outbox (type, account_id, entry, facts_json) values ('account.low_balance', new.id, new.entries,
    json_object('balance_nanos', cast(new.balance_nanos as text), 'low_balance_at_nanos', cast(new.low_balance_nanos as text)));
end;

create trigger account_rises after update of balance_nanos on account
when new.balance_nanos > old.balance_nanos
begin
  update account set exhausted = 0,
    balance_low = iif(new.balance_nanos <= new.low_balance_nanos, new.balance_low, 0) where id = new.id;
  insert into outbox (type, account_id, entry, facts_json) values ('account.credited', new.id, new.entries,
    json_object('amount_nanos', cast(new.balance_nanos - old.balance_nanos as text),
      'balance_nanos', cast(new.balance_nanos as text)));
end;
`;
