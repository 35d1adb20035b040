import type { LedgerAdministration } from "./ledger.ts";
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

function notAnswered(problem: UsageProblemName): OperatorError {
  const { message, param } = usageProblems[problem];
  return new OperatorError("invalid_value", `\`${param}\` ${message}`, { param });
}
