import type { ChangedBy } from "./administration/changed-by.ts";
import type { ArchivesAdministration, LedgerAdministration } from "./ledger.ts";
import { limits } from "../limits.ts";
import { OperatorError } from "./operator-error.ts";
import type { RunOperation } from "./store-operations.ts";
import { type UsageProblemName, usageProblems, type UsageRow } from "./usage/usage-query.ts";

/** What operators ask of usage, over a store. */
export function administerUsage(
  run: RunOperation,
): Pick<LedgerAdministration, "sumUsage" | "printUsage"> {
  return {
    async sumUsage(query) {
      const rows: UsageRow[] = [];
      for (let sinceMs = query.sinceMs; ;) {
        const page = await run("pageUsage", { ...query, sinceMs });
        if (typeof page === "string") throw notAnswered(page);
        rows.push(...page.rows);
        if (page.nextMs === null) return rows;
        sinceMs = page.nextMs;
      }
    },
    async printUsage(query) {
      const page = await run("printUsage", query);
      if (typeof page === "string") throw notAnswered(page);
      return page;
    },
  };
}

/** What takes old receipts out of a store. */
export function administerArchives(
  run: RunOperation,
  by: ChangedBy,
): Omit<ArchivesAdministration, "keepUsage" | "listAccounts"> &
  Pick<LedgerAdministration, "findArchive" | "archivedUntil"> {
  return {
    rollUp: (order) => run("checkpoint", { ...order, entriesMax: limits.archiveEntriesAStep }),
    readArchivable: (order) => run("readArchivable", order),
    archiveReceipts: (batch) => run("archiveReceipts", { ...batch, by }),
    findArchive: (part) => run("findArchive", part),
    archivedUntil: (accountId) => run("archivedUntil", accountId),
  };
}

function notAnswered(problem: UsageProblemName): OperatorError {
  const { message, param } = usageProblems[problem];
  return new OperatorError("invalid_value", `\`${param}\` ${message}`, { param });
}
