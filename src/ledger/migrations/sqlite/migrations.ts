import type { DatabaseSync } from "node:sqlite";
import { accounts } from "./0001-accounts.ts";
import { chainOldEntries, journal, replaceEntries } from "./0002-journal.ts";
import { resolved } from "./0003-resolved.ts";
import { owners } from "./0004-owners.ts";

/** One step of the schema: statements, or work that SQL alone cannot do. */
export interface SqliteMigration {
  readonly name: string;
  readonly steps: readonly (string | ((database: DatabaseSync) => void))[];
}

/** Forward only, in order; the number is the position, from 1. Never reordered, never edited after a release. */
export const sqliteMigrations: readonly SqliteMigration[] = [
  { name: "0001-accounts", steps: [accounts] },
  { name: "0002-journal", steps: [journal, chainOldEntries, replaceEntries] },
  { name: "0003-resolved", steps: [resolved] },
  { name: "0004-owners", steps: [owners] },
];
