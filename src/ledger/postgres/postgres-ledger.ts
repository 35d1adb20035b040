import { openStoreLedger, type StoreLedger, type StoreLedgerParts } from "../store-ledger.ts";
import {
  connectPostgresStore,
  type PostgresStoreParts,
  type PostgresStoreSettings,
} from "./store.ts";

/** Opens the ledger in PostgreSQL. Rejects with an OperatorError when the database cannot be used. */
export async function openPostgresLedger(
  settings: PostgresStoreSettings,
  parts: PostgresStoreParts & StoreLedgerParts,
): Promise<StoreLedger> {
  const { now: wallMs = Date.now } = parts;
  return openStoreLedger(await connectPostgresStore(settings, parts), { ...parts, wallMs });
}
