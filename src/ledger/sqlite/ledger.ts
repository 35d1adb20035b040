import { openStoreLedger, type StoreLedger, type StoreLedgerParts } from "../store-ledger.ts";
import type { StoreSettings } from "./store.ts";
import { connectStore, type StoreClientParts } from "./worker-client.ts";

/** Where the ledger is and what it decides by. */
export type SqliteLedgerSettings = StoreSettings;

/** What the ledger works with. */
export interface SqliteLedgerParts extends StoreLedgerParts, StoreClientParts {}

/** Both halves of the ledger on one SQLite file. */
export type SqliteLedger = StoreLedger;

/** Opens the ledger: its thread, its file, its schema. Rejects with an OperatorError when the file cannot be used. */
export async function openSqliteLedger(
  settings: SqliteLedgerSettings,
  parts: SqliteLedgerParts,
): Promise<SqliteLedger> {
  return openStoreLedger(await connectStore(settings, parts), parts);
}
