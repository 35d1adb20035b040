import type { SQLInputValue, StatementSync } from "node:sqlite";
import type { Row } from "../row.ts";

/** The first row, or null. */
export function getRow(statement: StatementSync, ...values: SQLInputValue[]): Row | null {
  return statement.get(...values) ?? null;
}
