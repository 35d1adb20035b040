import type { Row } from "../row.ts";
import type { PostgresOperations } from "../store-operations.ts";
import type { RowSource } from "../row-source.ts";
import { verifyRows } from "../verify-rows.ts";
import type { Database } from "./database.ts";

/** Verifies one snapshot, a piece of rows at a time. */
export function openVerify(database: Database): PostgresOperations["verify"] {
  return (order) =>
    database.snapshot(async (read) => {
      const sources = new Map<RowSource, AsyncGenerator<readonly Row[], undefined>>();
      const nextPiece = async (source: RowSource): Promise<readonly Row[]> => {
        const pieces = sources.get(source) ?? read(source.sql);
        sources.set(source, pieces);
        return (await pieces.next()).value ?? [];
      };
      const reading = verifyRows(order, (column) => `encode(${column}, 'hex')`);
      let step = reading.next();
      while (step.done !== true) step = reading.next(await nextPiece(step.value));
      return step.value;
    });
}
