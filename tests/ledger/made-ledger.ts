import { readFileSync, writeFileSync } from "node:fs";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import {
  openStoreOn,
  type SqliteStore,
  type StoreSettings,
} from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, temporaryLedger } from "./support.ts";

/** The ledger's file, and the rate window beside it. */
const suffixes = ["", "-rate"] as const;
let made: readonly Buffer[] | null = null;

/** Puts a new ledger at a path, where no file is yet: a copy, as making one takes as long as most tests. */
export function makeLedger(path: string): void {
  made ??= readNewLedger();
  for (const [at, bytes] of made.entries())
    writeFileSync(`${path}${suffixes[at] ?? ""}`, bytes, { mode: 0o600, flag: "wx" });
}

/** A store over a new ledger, whose files go with it. */
export function openNewStore(settings: Omit<StoreSettings, "path"> = defaultSettings): SqliteStore {
  const { path, ...file } = temporaryLedger();
  makeLedger(path);
  const database = openDatabase({ path, synchronous: settings.synchronous });
  const store = openStoreOn(database, { ...settings, path });
  return {
    execute: (calls) => store.execute(calls),
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      file[Symbol.dispose]();
    },
  };
}

function readNewLedger(): readonly Buffer[] {
  using file = temporaryLedger();
  openDatabase({ path: file.path, synchronous: "normal" }).close();
  return suffixes.map((suffix) => readFileSync(`${file.path}${suffix}`));
}
