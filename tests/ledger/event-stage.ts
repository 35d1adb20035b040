import { DatabaseSync } from "node:sqlite";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, type PostgresDatabases } from "./postgres-server.ts";
import { defaultSettings, temporaryLedger } from "./support.ts";

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

/** A ledger in a file of its own. */
export async function openSqliteStage(): Promise<EventStage> {
  const file = temporaryLedger();
  let nowMs = 1_000_000;
  const settings = { ...defaultSettings, path: file.path };
  const opened: StoreLedger[] = [];
  const open = async (): Promise<StoreLedger> => {
    const ledger = await openSqliteLedger(settings, { now: () => nowMs, actor: "user:ann" });
    opened.push(ledger);
    return ledger;
  };
  return {
    ledger: await open(),
    nowMs: () => nowMs,
    later: (ms) => void (nowMs += ms),
    openAnother: open,
    async query(sql) {
      await Promise.resolve();
      using database = new DatabaseSync(file.path);
      return database.prepare(sql).all();
    },
    async [Symbol.asyncDispose]() {
      for (const ledger of opened) await ledger[Symbol.asyncDispose]();
      file[Symbol.dispose]();
    },
  };
}

/** Ledgers in databases of one server. */
export async function openPostgresStages(): Promise<
  AsyncDisposable & { open(): Promise<EventStage> }
> {
  const server: PostgresDatabases = await openPostgresDatabases();
  let databases = 0;
  return {
    async open() {
      databases += 1;
      const url = await server.createDatabase(`events_${String(databases)}`);
      let nowMs = 1_000_000;
      const opened: StoreLedger[] = [];
      const open = async (): Promise<StoreLedger> => {
        const settings = { ...defaultSettings, url };
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
