import { z } from "@hono/zod-openapi";
import { statementFormOf, statementForms, writeStatement } from "../ledger/statement-text.ts";
import { defineRoute, type OperatorApp } from "./route.ts";
import { credits } from "./schemas.ts";

/** What moved the balance of an account in a month. */
export const statementSchema = z
  .object({
    account: z.string(),
    name: z.string(),
    external_id: z.string().nullable(),
    month: z.string().openapi({ description: "of UTC, such as 2026-10" }),
    opening_balance: credits,
    top_ups: credits.openapi({ description: "an account's starting credit among them" }),
    grants: credits,
    refunds: credits,
    corrections: credits,
    charged: credits.openapi({ description: "what requests cost that ended in the month" }),
    closing_balance: credits,
    days: z.array(z.object({ day: z.string(), requests: z.int(), charged: credits })),
    credits: z.array(
      z.object({
        sequence: z.int(),
        at: z.string(),
        kind: z.string(),
        amount: credits,
        reference: z.string().nullable(),
        receipt: z.string().nullable(),
        note: z.string().nullable(),
      }),
    ),
    credits_total: z.int().openapi({ description: "more than `credits` lists where it is larger" }),
    head: z
      .string()
      .nullable()
      .openapi({ description: "of the last entry before the month's end" }),
  })
  .openapi("Statement");

const show = defineRoute("showStatement", "get /accounts/{id}/statements/{month}", {
  summary: "What moved the balance of an account in a month, as JSON, CSV or a page to print",
  request: {
    params: z.object({
      id: z.string().openapi({ example: "acct_5nXbTrMv2kQ0aZe" }),
      month: z.string().openapi({ example: "2026-10" }),
    }),
    query: z.strictObject({
      format: z
        .enum(statementForms)
        .optional()
        .openapi({ description: "goes before what `Accept` asks for" }),
    }),
  },
  answer: {
    description: "the statement",
    schema: statementSchema,
    texts: ["text/csv", "text/html"],
  },
});

/** Adds the route of statements. */
export function addStatementRoutes(app: OperatorApp): void {
  app.openapi(show, async (context) => {
    const { id, month } = context.req.valid("param");
    const statement = await context.get("ledger").readStatement(id, month);
    const asked = statementFormOf(context.req.header("accept"));
    const { format = asked } = context.req.valid("query");
    const { body, headers } = writeStatement(statement, format);
    // A route's type knows its answer in JSON alone.
    return context.body(body, 200, { ...headers }) as never;
  });
}
