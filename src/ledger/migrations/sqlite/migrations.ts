import type { DatabaseSync } from "node:sqlite";
import { accounts } from "./0001-accounts.ts";
import { chainOldEntries, journal, replaceEntries } from "./0002-journal.ts";
import { resolved } from "./0003-resolved.ts";
import { owners } from "./0004-owners.ts";
import { oldest } from "./0005-oldest.ts";
import { budgets } from "./0011-budgets.ts";
import { operators } from "./0006-operators.ts";
import { policies } from "./0007-policies.ts";
import { events } from "./0008-events.ts";
import { sessions } from "./0009-sessions.ts";
import { prices } from "./0010-prices.ts";
import { allowKindsOfCredit, references } from "./0012-references.ts";
import { labels } from "./0013-labels.ts";
import { replicas } from "./0014-replicas.ts";
import { budgetEvents } from "./0015-budget-events.ts";
import { usage } from "./0016-usage.ts";
import { grants } from "./0017-grants.ts";
import { usageOfAll } from "./0018-usage-of-all.ts";
import { grantSpent } from "./0019-grant-spent.ts";
import { admitted } from "./0020-admitted.ts";
import { archives } from "./0021-archives.ts";
import { usageOfWeeks } from "./0022-usage-of-weeks.ts";
import type { Readable } from "../oldest-reader.ts";

/** One step of the schema: statements, or work that SQL alone cannot do. */
export interface SqliteMigration extends Readable {
  readonly name: string;
  readonly steps: readonly (string | ((database: DatabaseSync) => void))[];
}

/** Forward only, in order; the number is the position, from 1. Never reordered, never edited after a release. */
export const sqliteMigrations: readonly SqliteMigration[] = [
  { name: "0001-accounts", oldest: 1, steps: [accounts] },
  { name: "0002-journal", oldest: 2, steps: [journal, chainOldEntries, replaceEntries] },
  { name: "0003-resolved", oldest: 3, steps: [resolved] },
  { name: "0004-owners", oldest: 4, steps: [owners] },
  // Programs of the schemas before know nothing of `oldest` and refuse whatever is newer.
  { name: "0005-oldest", oldest: 5, steps: [oldest] },
  { name: "0006-operators", oldest: 5, steps: [operators] },
  { name: "0007-policies", oldest: 5, steps: [policies] },
  { name: "0008-events", oldest: 5, steps: [events] },
  { name: "0009-sessions", oldest: 5, steps: [sessions] },
  { name: "0010-prices", oldest: 5, steps: [prices] },
  { name: "0011-budgets", oldest: 5, steps: [budgets] },
  { name: "0012-references", oldest: 5, steps: [allowKindsOfCredit, references] },
  { name: "0013-labels", oldest: 5, steps: [labels] },
  { name: "0014-replicas", oldest: 5, steps: [replicas] },
  { name: "0015-budget-events", oldest: 5, steps: [budgetEvents] },
  { name: "0016-usage", oldest: 5, steps: [usage] },
  { name: "0017-grants", oldest: 5, steps: [grants] },
  { name: "0018-usage-of-all", oldest: 5, steps: [usageOfAll] },
  { name: "0019-grant-spent", oldest: 5, steps: [grantSpent] },
  { name: "0020-admitted", oldest: 5, steps: [admitted] },
  { name: "0021-archives", oldest: 5, steps: [archives] },
  { name: "0022-usage-of-weeks", oldest: 5, steps: [usageOfWeeks] },
];
