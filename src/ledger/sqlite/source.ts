import type { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import type { CopiedTable, LedgerSource } from "../copied-tables.ts";
import { OperatorError } from "../operator-error.ts";
import { type Row, numberOf } from "../row.ts";
import { openDatabase, retire } from "./database.ts";
import { faultKind } from "./fault.ts";
import { getRow } from "./get-row.ts";
import { openVerify } from "./verify.ts";

/** Opens a ledger's file to copy it, and keeps others from writing to it until it is closed. */
export function openSqliteSource(path: string): LedgerSource {
  const database = openDatabase({ path, synchronous: "full" });
  try {
    lock(database, path);
    const open = getRow(
      database.prepare("select count(*) as count from reservation where state = 'open'"),
    );
    const verify = openVerify(database);
    return {
      open: open === null ? 0 : numberOf(open, "count"),
      verify: () => verify({ against: [], tellHeads: true }, 0),
      read: (table) => read(database, table),
      retire() {
        retire(database);
        database.exec("commit");
      },
      [Symbol.dispose]: () => {
        database.close();
      },
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

function lock(database: DatabaseSync, path: string): void {
  try {
    database.exec("begin immediate");
  } catch (error) {
    if (faultKind(error) !== "busy") throw error;
    throw new OperatorError(
      "not_possible",
      `Another process keeps writing to ${path}. Stop the service and try again.`,
      error,
    );
  }
}

function* read(database: DatabaseSync, table: CopiedTable): Generator<readonly Row[], undefined> {
  const rows = database
    .prepare(`select ${table.columns.join(", ")} from ${table.name} order by ${table.order}`)
    .iterate();
  let piece: Row[] = [];
  for (const row of rows) {
    piece.push(row);
    if (piece.length < limits.copiedRowsAPiece) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}
