import type { DatabaseSync } from "node:sqlite";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import { openStoreOn, type StoreSettings } from "../../src/ledger/sqlite/store.ts";
import type { Rules } from "./plan.ts";
import {
  columns,
  eventsSql,
  archivedColumn,
  observedOf,
  type SimulatedStore,
} from "./simulated-store.ts";

/** One database in memory for run after run: an empty ledger is a copy of the first, which is quicker than migrating. */
export function openSqliteStores(): Disposable & { fresh(rules: Rules): SimulatedStore } {
  const database = openDatabase({ path: ":memory:", synchronous: "normal" });
  const empty = database.serialize();
  return {
    fresh(rules) {
      database.deserialize(empty);
      database.exec("delete from rate.ticket");
      return storeOn(database, settingsOf(rules));
    },
    [Symbol.dispose]: () => {
      database.close();
    },
  };
}

function settingsOf(rules: Rules): StoreSettings {
  return {
    path: ":memory:",
    synchronous: "normal",
    prices: rules,
    concurrencyPerAccount: rules.concurrency,
    requestsPerMinute: rules.perMinute,
    leaseMs: rules.leaseMs,
  };
}

function storeOn(database: DatabaseSync, settings: StoreSettings): SimulatedStore {
  const accounts = database.prepare(
    `select ${columns.account}, ${archivedColumn("")} from account`,
  );
  const reservations = database.prepare(`select ${columns.reservation} from reservation`);
  const entries = database.prepare(
    `select ${columns.entry} from entry where account_id = ? and sequence > ? order by sequence`,
  );
  const keys = database.prepare(`select ${columns.key} from api_key`);
  const tickets = database.prepare(`select ${columns.ticket} from rate.ticket`);
  const events = database.prepare(eventsSql(""));
  return {
    clock: "caller",
    forgets: "tickets",
    graceMs: 0,
    openProcess(owner, isPresent) {
      const store = openStoreOn(database, { ...settings, owner }, { guard: () => {}, isPresent });
      return (calls) => store.execute(calls);
    },
    observe(seen) {
      const accountRows = accounts.all();
      return observedOf({
        accounts: accountRows,
        reservations: reservations.all(),
        entries: accountRows.flatMap((row) => {
          const id = String(row["id"]);
          return entries.all(id, seen.get(id) ?? 0);
        }),
        tickets: tickets.all(),
        keys: keys.all(),
        events: events.all(),
      });
    },
  };
}
