import { z } from "@hono/zod-openapi";
import { limits } from "../limits.ts";
import { groupingsOf, usageGroupings } from "../ledger/usage/usage-query.ts";
import { pageParameters } from "./paging.ts";
import { instant } from "./route.ts";
import { time, timezone } from "./schemas.ts";

const count = z.int().min(0);
const latency = count.nullable().openapi({
  description: "milliseconds, right to a factor of two; null where no request has it",
});

/** The requests of one group, added up. Beside what was asked for as `by` no group is there. */
export const usageSchema = z
  .object({
    account: z.string().optional(),
    hour: z.string().optional().openapi({ example: "2026-01-31T12:00:00Z" }),
    day: z.string().optional().openapi({ example: "2026-01-31" }),
    month: z.string().optional().openapi({ example: "2026-01" }),
    key: z.string().optional(),
    format: z.string().optional(),
    label: z.string().nullable().optional().openapi({ description: "null: requests without one" }),
    requests: count,
    input_tokens: count,
    cached_input_tokens: count,
    output_tokens: count,
    reasoning_tokens: count,
    charged: z.string(),
    account_name: z.string().nullable().optional(),
    key_name: z.string().nullable().optional(),
    begins_at: time.optional().openapi({ description: "of its hour, day or month, in UTC" }),
    ends_at: time.optional(),
    completed: count,
    cancelled: count,
    cancelled_before_output: count,
    refused: count,
    failed: count,
    cancelled_by_operator: count,
    lease_lost: count,
    first_output_p50_ms: latency,
    first_output_p95_ms: latency,
    first_output_p99_ms: latency,
    total_p50_ms: latency,
    total_p95_ms: latency,
    total_p99_ms: latency,
  })
  .openapi("Usage");

/** The sums of a query, or of its first times. */
export const usageSumsSchema = z
  .object({
    data: z.array(usageSchema),
    next_cursor: z
      .string()
      .nullable()
      .openapi({ description: "null: these are all; else the rows of later times follow" }),
  })
  .openapi("UsageSums");

const groupings = z
  .string()
  .transform((text, context) => {
    const by = groupingsOf(text);
    if (by !== null) return by;
    context.addIssue({
      code: "custom",
      message: `is one of ${usageGroupings.join(", ")}, or two of them with a comma between, of which one at most is a time`,
    });
    return z.NEVER;
  })
  .openapi({ type: "string", example: "day,account" });

/** Ids of accounts, with commas between. */
export const accountIds = z
  .string()
  .transform((text) => [...new Set(text.split(","))])
  .refine((ids) => ids.length <= limits.pageRowsMax, {
    error: `is of ${String(limits.pageRowsMax)} accounts at most: ask for others by another call`,
  })
  .openapi({ type: "string", description: "an id, or several with commas between" });

/** What of usage to add up. */
export const usageParameters = z.strictObject({
  by: groupings.default(["day"]),
  account: accountIds.optional(),
  key: z.string().optional(),
  format: z.string().optional(),
  since: instant.optional().openapi({ description: "requests that ended from then on" }),
  until: instant.optional().openapi({ description: "requests that ended before" }),
  timezone: timezone.default("UTC"),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(limits.usageRowsMax)
    .default(limits.usageRowsMax)
    .openapi({
      description: "rows of the answer, at most; it ends with a whole hour, day or month",
    }),
  cursor: pageParameters.cursor,
});
