import { accountFunctions } from "./accounts.sql.ts";
import { admitFunctions } from "./admit.sql.ts";
import { budgetFunctions } from "./budgets.sql.ts";
import { authorizeFunctions } from "./authorize.sql.ts";
import { eventFunctions } from "./events.sql.ts";
import { presenceFunctions } from "./presence.sql.ts";
import { resolveFunctions } from "./resolve.sql.ts";

/**
 * The rules that decide in the database, as they are now; a start makes all of them anew after any migration. Each one
 * that a request calls locks its account's row (or its key's window) first and reads and writes after: counting rows of another table
 * within one statement would count in a snapshot older than the lock.
 *
 * To change a rule, change its text in place and add a migration without statements to `migrations/postgres/migrations.ts`;
 * a test that knows the hash of this text fails until then. Arguments and answers stay: replicas of the version before
 * call the same functions while they are replaced. A function that needs other arguments is a new function beside the old.
 */
export const functions: string = [
  // A function in plain SQL is checked when it is made: what it calls stands before it.
  accountFunctions,
  budgetFunctions,
  presenceFunctions,
  authorizeFunctions,
  admitFunctions,
  resolveFunctions,
  eventFunctions,
].join("");
