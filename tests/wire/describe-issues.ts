import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** What is wrong with a value, one line an issue: where and what. Of a union it is what the nearest branch says. */
export function describeIssues(error: z.ZodError): string {
  return flatten(error.issues).join("; ");
}

function flatten(issues: readonly Issue[], within = ""): readonly string[] {
  return issues.flatMap((issue) => {
    const where = `${within}${issue.path.map((step) => `.${String(step)}`).join("")}`;
    if (issue.code !== "invalid_union") return [`${where.slice(1)}: ${issue.message}`];
    const nearest = issue.errors
      .map((branch) => flatten(branch, where))
      .toSorted((one, other) => one.length - other.length)[0];
    return nearest ?? [`${where.slice(1)}: not one of the values that the schema knows`];
  });
}
