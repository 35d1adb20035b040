import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import { openStoreOn } from "../../src/ledger/sqlite/store.ts";
import { openStoreLedger, type StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { StoreClient } from "../../src/ledger/store-operations.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute } from "./postgres-server.ts";
import { makeLedger } from "./made-ledger.ts";
import { defaultSettings, run, temporaryLedger } from "./support.ts";

type Row = Readonly<Record<string, unknown>>;

/** A ledger whose time stands still, and its tables past the code under test. */
export interface EventStage extends AsyncDisposable {
  readonly ledger: StoreLedger;
  nowMs(): number;
  /** Moves the time of the store on. */
  later(ms: number): void;
  /** Another process on the same ledger. */
  openAnother(): Promise<StoreLedger>;
  query(sql: string): Promise<readonly Row[]>;
}

/** A ledger without the thread that a service has. */
export async function openSqliteStage(): Promise<EventStage> {
  await Promise.resolve();
  let nowMs = 1_000_000;
  const file = temporaryLedger();
  makeLedger(file.path);
  const database = openDatabase({ path: file.path, synchronous: "normal" });
  const store = openStoreOn(database, { ...defaultSettings, path: file.path });
  const client = {
    async call(name, argument) {
      await Promise.resolve();
      return run(store, name, argument, nowMs);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  } as StoreClient;
  const open = (): StoreLedger => openStoreLedger(client, { actor: "user:ann" });
  return {
    ledger: open(),
    nowMs: () => nowMs,
    later: (ms) => void (nowMs += ms),
    openAnother: () => Promise.resolve(open()),
    async query(sql) {
      await Promise.resolve();
      return database.prepare(sql).all();
    },
    async [Symbol.asyncDispose]() {
      await Promise.resolve();
      store[Symbol.dispose]();
      file[Symbol.dispose]();
    },
  };
}

/** Ledgers in databases of one server. */
export async function openPostgresStages(): Promise<
  AsyncDisposable & { open(): Promise<EventStage> }
> {
  const server = await openPostgresDatabases();
  let databases = 0;
  return {
    async open() {
      databases += 1;
      const url = await server.createLedger(`events_${String(databases)}`);
      let nowMs = 1_000_000;
      const opened: StoreLedger[] = [];
      const open = async (): Promise<StoreLedger> => {
        // Of a machine that has no time left, a server's statements take long, and no fault is tested here.
        const settings = { ...defaultSettings, url, busyMs: 100_000 };
        const ledger = await openPostgresLedger(settings, { now: () => nowMs, actor: "user:ann" });
        opened.push(ledger);
        return ledger;
      };
      return {
        ledger: await open(),
        nowMs: () => nowMs,
        later: (ms) => void (nowMs += ms),
        openAnother: open,
        query: (sql) => execute(`${url}&options=-csearch_path%3Dtributary`, sql),
        async [Symbol.asyncDispose]() {
          for (const ledger of opened) await ledger[Symbol.asyncDispose]();
        },
      };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
