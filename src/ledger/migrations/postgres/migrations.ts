import { accounts } from "./0001-accounts.ts";
import { resolved } from "./0004-resolved.ts";
import { owners } from "./0005-owners.ts";

/** One step of the schema; null: it has no statements, as it was made for the functions, which follow any step. */
export interface PostgresMigration {
  readonly name: string;
  readonly sql: string | null;
}

/**
 * Forward only, in order; the number is the position, from 1. Never reordered, and never edited after a release in what
 * they come to: steps that made functions once have no statements any more, since the functions of `postgres/functions.ts`
 * are made after the last of them.
 */
export const postgresMigrations: readonly PostgresMigration[] = [
  { name: "0001-accounts", sql: accounts },
  { name: "0002-operations", sql: null },
  { name: "0003-authorize-with-credit", sql: null },
  { name: "0004-resolved", sql: resolved },
  { name: "0005-owners", sql: owners },
  { name: "0006-functions-by-themselves", sql: null },
];
