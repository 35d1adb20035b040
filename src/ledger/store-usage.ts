import type { LedgerAdministration } from "./ledger.ts";
import { OperatorError } from "./operator-error.ts";
import type { RunOperation } from "./store-operations.ts";
import { tooManyUsageRows, type UsageRow } from "./usage/usage-query.ts";

/** What operators ask of usage, over a store. */
export function administerUsage(
  run: RunOperation,
): Pick<LedgerAdministration, "sumUsage" | "printUsage"> {
  return {
    async sumUsage(query) {
      const rows: UsageRow[] = [];
      for (let sinceMs = query.sinceMs; ;) {
        const page = await run("pageUsage", { ...query, sinceMs });
        if (page === null) throw tooManyRows();
        rows.push(...page.rows);
        if (page.nextMs === null) return rows;
        sinceMs = page.nextMs;
      }
    },
    async printUsage(query) {
      const page = await run("printUsage", query);
      if (page === null) throw tooManyRows();
      return page;
    },
  };
}

function tooManyRows(): OperatorError {
  return new OperatorError("invalid_value", `\`by\` ${tooManyUsageRows}`, { param: "by" });
}
