import type { DatabaseSync } from "node:sqlite";
import { getRow } from "./get-row.ts";

// The application id in SQLite's header says what a file is: it is read with the rest of the first page, inside the
// transaction that asks.

/** "TRIB", so that another program's database is told from a ledger. */
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
