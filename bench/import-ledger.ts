import { existsSync } from "node:fs";
import { join } from "node:path";
import type { openPostgresLedger } from "../src/ledger/postgres/postgres-ledger.ts";
import type { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";

/** The SQLite ledger of a checkout: an older one does not open what this one has made. */
export async function importSqliteLedger(
  checkout: string,
): Promise<{ readonly openSqliteLedger: typeof openSqliteLedger }> {
  return import(moduleOf(checkout, "sqlite"));
}

/** The PostgreSQL ledger of a checkout. */
export async function importPostgresLedger(
  checkout: string,
): Promise<{ readonly openPostgresLedger: typeof openPostgresLedger }> {
  return import(moduleOf(checkout, "postgres"));
}

/** Versions before the ledger had one vocabulary called the file `ledger.ts`. */
function moduleOf(checkout: string, store: "sqlite" | "postgres"): string {
  const folder = join(checkout, "src/ledger", store);
  const module = join(folder, `${store}-ledger.ts`);
  return existsSync(module) ? module : join(folder, "ledger.ts");
}
