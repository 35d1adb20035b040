import { join } from "node:path";
import type { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";

/** The SQLite ledger of a checkout: an older one does not open what this one has made. */
export async function importLedger(
  checkout: string,
): Promise<{ readonly openSqliteLedger: typeof openSqliteLedger }> {
  return import(join(checkout, "src/ledger/sqlite/sqlite-ledger.ts"));
}
