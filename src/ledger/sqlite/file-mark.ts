import type { DatabaseSync } from "node:sqlite";
import { getRow } from "./get-row.ts";

// The application id in SQLite's header says what a file is: SQLite reads it with the first page, inside the transaction
// that asks for it.

/** "TRIB": a ledger. Another program's database has another id. */
export const ledgerMark = 0x5452_4942;
/** "TRIM": a ledger that was moved. Nothing is written to it any more. */
export const movedMark = 0x5452_494d;
/** "TRIG": a ledger that is being moved, or whose move was interrupted: only another `ledger move` opens it. */
export const movingMark = 0x5452_4947;

/** Writes what the file is, in the transaction that is open. */
export function setMark(database: DatabaseSync, mark: number): void {
  database.exec(`pragma main.application_id = ${String(mark)}`);
}

/** Whether the file was moved, or is being moved, as the open transaction sees it. Prepared once. */
export function isMoved(database: DatabaseSync): () => boolean {
  const read = database.prepare("pragma main.application_id");
  return () => {
    const mark = Number(getRow(read)?.["application_id"] ?? 0);
    return mark === movedMark || mark === movingMark;
  };
}
