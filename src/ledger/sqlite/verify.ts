import type { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import type { Row } from "../row.ts";
import type { StoreOperations } from "../store-operations.ts";
import type { RowSource } from "../row-source.ts";
import { verifyRows } from "../verify-rows.ts";

/** Verifies what the open transaction sees, a piece of rows at a time. */
export function openVerify(database: DatabaseSync): StoreOperations["verify"] {
  return (order) => {
    const sources = new Map<RowSource, Iterator<Row, undefined>>();
    const nextPiece = (source: RowSource): readonly Row[] => {
      const rows = sources.get(source) ?? database.prepare(source.sql).iterate();
      sources.set(source, rows);
      return take(rows, limits.verifyRowsAPiece);
    };
    try {
      const reading = verifyRows(order, (column) => `lower(hex(${column}))`);
      let step = reading.next();
      while (step.done !== true) step = reading.next(nextPiece(step.value));
      return step.value;
    } finally {
      // A statement that is not at its end would keep the snapshot.
      for (const rows of sources.values()) rows.return?.();
    }
  };
}

function take(rows: Iterator<Row, undefined>, count: number): readonly Row[] {
  const piece: Row[] = [];
  while (piece.length < count) {
    const next = rows.next();
    if (next.done === true) break;
    piece.push(next.value);
  }
  return piece;
}
