import { z } from "@hono/zod-openapi";
import { ProblemError } from "./problem.ts";

/** The header of a change that is made for one version of what it changes. */
export const versionHeader = z.object({
  "if-match": z
    .string()
    .optional()
    .openapi({ description: "the object's `version`: `412` where it has changed since" }),
});

/** The version that a change was made for; null: for any. */
export function versionOf(header: string | undefined): number | null {
  if (header === undefined || header === "*") return null;
  const [, version] = /^"?(\d{1,15})"?$/.exec(header) ?? [];
  if (version !== undefined) return Number(version);
  throw new ProblemError({
    status: 400,
    code: "invalid_value",
    detail: "`if-match` is the version of what is changed, such as 3, or *.",
    param: "if-match",
  });
}
