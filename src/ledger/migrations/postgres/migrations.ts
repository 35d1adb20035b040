import { accounts } from "./0001-accounts.ts";
import { operations } from "./0002-operations.ts";
import { authorizeWithCredit } from "./0003-authorize-with-credit.ts";
import { resolved } from "./0004-resolved.ts";
import { owners } from "./0005-owners.ts";

/** Forward only, in order; the number is the position, from 1. Never reordered, never edited after a release. */
export const postgresMigrations: readonly { readonly name: string; readonly sql: string }[] = [
  { name: "0001-accounts", sql: accounts },
  { name: "0002-operations", sql: operations },
  { name: "0003-authorize-with-credit", sql: authorizeWithCredit },
  { name: "0004-resolved", sql: resolved },
  { name: "0005-owners", sql: owners },
];
