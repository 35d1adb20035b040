import { accounts } from "./0001-accounts.ts";
import { resolved } from "./0004-resolved.ts";
import { owners } from "./0005-owners.ts";
import { oldest } from "./0007-oldest.ts";
import { budgets } from "./0014-budgets.ts";
import { budgetRules } from "./0020-budget-rules.ts";
import { operators } from "./0008-operators.ts";
import { policies } from "./0010-policies.ts";
import { events } from "./0011-events.ts";
import { sessions } from "./0012-sessions.ts";
import { prices } from "./0013-prices.ts";
import { authorizeWithOwnPrices } from "./0018-own-prices.ts";
import { authorizeWithLimits } from "./0019-limits.ts";
import { references } from "./0015-references.ts";
import { labels } from "./0016-labels.ts";
import { replicas } from "./0017-replicas.ts";
import { budgetEvents } from "./0022-budget-events.ts";
import { usage } from "./0023-usage.ts";
import { grants } from "./0024-grants.ts";
import { usageOfAll } from "./0026-usage-of-all.ts";
import { admitted } from "./0027-admitted.ts";
import { archives } from "./0028-archives.ts";
import { usageOfWeeks } from "./0029-usage-of-weeks.ts";
import { shorterChecks } from "./0032-shorter-checks.ts";
import type { Readable } from "../oldest-reader.ts";

/** One step of the schema; null: it has no statements, as it was made for the functions, which follow any step. */
export interface PostgresMigration extends Readable {
  readonly name: string;
  readonly sql: string | null;
}

/**
 * Forward only, in order; the number is the position, from 1. Never reordered, and never edited after a release in what
 * they come to: steps that made functions once have no statements any more, since the functions of `postgres/functions.ts`
 * are made after the last of them.
 */
export const postgresMigrations: readonly PostgresMigration[] = [
  { name: "0001-accounts", oldest: 1, sql: accounts },
  { name: "0002-operations", oldest: 2, sql: null },
  { name: "0003-authorize-with-credit", oldest: 3, sql: null },
  { name: "0004-resolved", oldest: 4, sql: resolved },
  { name: "0005-owners", oldest: 5, sql: owners },
  { name: "0006-functions-by-themselves", oldest: 6, sql: null },
  // Programs of the schemas before know nothing of `oldest` and refuse whatever is newer.
  { name: "0007-oldest", oldest: 7, sql: oldest },
  { name: "0008-operators", oldest: 7, sql: operators },
  { name: "0009-batches", oldest: 7, sql: null },
  { name: "0010-policies", oldest: 7, sql: policies },
  { name: "0011-events", oldest: 7, sql: events },
  { name: "0012-sessions", oldest: 7, sql: sessions },
  { name: "0013-prices", oldest: 7, sql: prices },
  { name: "0014-budgets", oldest: 7, sql: budgets },
  { name: "0015-references", oldest: 7, sql: references },
  { name: "0016-labels", oldest: 7, sql: labels },
  { name: "0017-replicas", oldest: 7, sql: replicas },
  { name: "0018-own-prices", oldest: 7, sql: authorizeWithOwnPrices },
  { name: "0019-limits", oldest: 7, sql: authorizeWithLimits },
  { name: "0020-budget-rules", oldest: 7, sql: budgetRules },
  { name: "0021-prices-when-needed", oldest: 7, sql: null },
  { name: "0022-budget-events", oldest: 7, sql: budgetEvents },
  { name: "0023-usage", oldest: 7, sql: usage },
  { name: "0024-grants", oldest: 7, sql: grants },
  { name: "0025-tickets-ahead", oldest: 7, sql: null },
  { name: "0026-usage-of-all", oldest: 7, sql: usageOfAll },
  { name: "0027-admitted", oldest: 7, sql: admitted },
  { name: "0028-archives", oldest: 7, sql: archives },
  { name: "0029-usage-of-weeks", oldest: 7, sql: usageOfWeeks },
  { name: "0030-looks-in-time", oldest: 7, sql: null },
  { name: "0031-asked-again-late", oldest: 7, sql: null },
  { name: "0032-shorter-checks", oldest: 7, sql: shorterChecks },
];
