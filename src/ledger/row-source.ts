import type { Row } from "./row.ts";

/** A select whose rows are read in pieces, by the names of its columns. */
export interface RowSource {
  readonly sql: string;
}

/** Reads a ledger: each step names a source and is given the next piece of its rows, an empty one after the last. */
export type Reading<Value> = Generator<RowSource, Value, readonly Row[]>;
