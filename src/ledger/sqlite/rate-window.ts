import type { DatabaseSync } from "node:sqlite";
import type { KeyId } from "../scalars.ts";
import type { RateState } from "../ledger.ts";
import { limits } from "../../limits.ts";
import { rateLimited, rateState } from "../refusals.ts";
import { numberOf, numberOrNullOf } from "../row.ts";
import { getRow } from "./get-row.ts";

/** The requests of each key in the window `(now - 60 s, now]`: one row a ticket, so that the limit is exact. */
export interface RateWindow {
  /** Takes a ticket, or throws `rate_limited`, which takes none. Without an id it only looks. */
  take(order: {
    readonly keyId: KeyId;
    readonly ticketId: string | null;
    readonly nowMs: number;
    /** How many requests of the key fit in its window. */
    readonly limit: number;
  }): { readonly ticket: string | null; readonly rate: RateState };
  giveBack(keyId: KeyId, ticket: string): void;
  /** Forgets what has left every window. */
  sweep(nowMs: number): void;
}

/** The window over the attached file. */
export function openRateWindow(database: DatabaseSync): RateWindow {
  const windowMs = limits.rateWindowMs;
  const ticketsInWindow = openTicketsInWindow(database);
  const blocking = database.prepare(
    "select at_ms from rate.ticket where key_id = ? order by at_ms limit 1 offset ?",
  );
  const insert = database.prepare("insert into rate.ticket (key_id, at_ms, id) values (?, ?, ?)");
  const remove = database.prepare(
    "delete from rate.ticket where key_id = ? and at_ms = ? and id = ?",
  );
  const sweepAll = database.prepare("delete from rate.ticket where at_ms <= ? or at_ms > ?");

  return {
    take({ keyId, limit, nowMs, ticketId }) {
      const tickets = ticketsInWindow(keyId, nowMs);
      const held = tickets?.held ?? 0;
      const newest = tickets?.newest ?? null;
      if (ticketId === null)
        return { ticket: null, rate: rateState(limit, held, untilEmpty(newest, nowMs)) };
      if (held >= limit) {
        // The oldest ticket, or one further on where the operator has lowered the limit.
        const oldest = getRow(blocking, keyId, held - limit);
        const leavesMs = (oldest === null ? nowMs : numberOf(oldest, "at_ms")) + windowMs;
        throw rateLimited(rateState(limit, held, untilEmpty(newest, nowMs)), leavesMs - nowMs);
      }
      insert.run(keyId, nowMs, ticketId);
      return {
        ticket: `${String(nowMs)}.${ticketId}`,
        rate: rateState(limit, held + 1, untilEmpty(Math.max(newest ?? nowMs, nowMs), nowMs)),
      };
    },
    giveBack(keyId, ticket) {
      const dot = ticket.indexOf(".");
      remove.run(keyId, Number(ticket.slice(0, dot)), ticket.slice(dot + 1));
    },
    sweep(nowMs) {
      sweepAll.run(nowMs - windowMs, nowMs + windowMs);
    },
  };
}

interface Tickets {
  readonly held: number;
  readonly oldest: number;
  readonly newest: number;
}

/**
 * Forgets first what is in no window any more. The transaction has the lock of this file by then: a write after a read
 * fails at once where another process has written in between. A ticket from more than a window ahead was taken before
 * the clock was set back, and would block until then.
 */
function openTicketsInWindow(
  database: DatabaseSync,
): (keyId: KeyId, nowMs: number) => Tickets | null {
  const windowMs = limits.rateWindowMs;
  // One side at a time: for both at once SQLite would look at every ticket of the key.
  const forget = database.prepare("delete from rate.ticket where key_id = ? and at_ms <= ?");
  const forgetAhead = database.prepare("delete from rate.ticket where key_id = ? and at_ms > ?");
  const look = database.prepare(
    `select (select held from rate.key_tickets where key_id = ?1) as held,
       (select min(at_ms) from rate.ticket where key_id = ?1) as oldest,
       (select max(at_ms) from rate.ticket where key_id = ?1) as newest`,
  );

  /** null: the key has no tickets. */
  function ticketsOf(keyId: KeyId): Tickets | null {
    const row = getRow(look, keyId);
    const oldest = row === null ? null : numberOrNullOf(row, "oldest");
    if (row === null || oldest === null) return null;
    return { held: numberOf(row, "held"), oldest, newest: numberOf(row, "newest") };
  }

  return (keyId, nowMs) => {
    const tickets = ticketsOf(keyId);
    const ended = tickets !== null && tickets.oldest <= nowMs - windowMs;
    const ahead = tickets !== null && tickets.newest > nowMs + windowMs;
    if (ended) forget.run(keyId, nowMs - windowMs);
    if (ahead) forgetAhead.run(keyId, nowMs + windowMs);
    return ended || ahead ? ticketsOf(keyId) : tickets;
  };
}

function untilEmpty(newestMs: number | null, nowMs: number): number {
  return newestMs === null ? 0 : newestMs + limits.rateWindowMs - nowMs;
}
