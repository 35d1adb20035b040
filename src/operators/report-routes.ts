import { z } from "@hono/zod-openapi";
import { parseCredit } from "../admission/price.ts";
import type { ReceiptQuery } from "../ledger/administration/lists.ts";
import type { Receipt } from "../ledger/receipt.ts";
import type { VerifyReport } from "../ledger/verify-journal.ts";
import { pageOf, pageParameters, pageSchema, startOf } from "./paging.ts";
import { ProblemError } from "./problem.ts";
import { defineRoute, idOf, instant, type OperatorApp, timeOf } from "./route.ts";
import {
  receiptOfApi,
  receiptSchema,
  usageSchema,
  usageToJson,
  verificationSchema,
} from "./schemas.ts";

const usage = defineRoute(
  "sumUsage",
  {
    method: "get",
    path: "/usage",
    summary: "Tokens and credit of the requests that have ended, added up for each account",
    request: {
      query: z.strictObject({
        by: z.enum(["hour", "day", "key", "format"]).default("day"),
        account: z.string().optional(),
        since: instant.optional().openapi({ description: "requests that ended from then on" }),
        until: instant.optional().openapi({ description: "requests that ended before" }),
      }),
    },
  },
  {
    status: 200,
    description: "the sums",
    schema: z.object({ data: z.array(usageSchema) }).openapi("UsageSums"),
  },
);
const receipts = defineRoute(
  "listReceipts",
  {
    method: "get",
    path: "/receipts",
    summary: "Receipts, by the time of admission, newest first",
    request: {
      query: z.strictObject({
        ...pageParameters,
        account: z.string().optional(),
        key: z.string().optional(),
        outcome: z.string().optional(),
        format: z.string().optional(),
        since: instant
          .optional()
          .openapi({ description: "requests that were admitted from then on" }),
        until: instant.optional().openapi({ description: "requests that were admitted before" }),
        charged_at_least: z.string().optional().openapi({ example: "0.5" }),
      }),
    },
  },
  { status: 200, description: "a page of receipts", schema: pageSchema(receiptSchema, "Receipt") },
);
const receipt = defineRoute(
  "showReceipt",
  {
    method: "get",
    path: "/receipts/{id}",
    summary: "What one request reserved and was charged",
    request: { params: idOf("req_5nXbTrMv2kQ0aZe") },
  },
  { status: 200, description: "the receipt", schema: receiptSchema },
);
const generations = defineRoute(
  "listGenerations",
  {
    method: "get",
    path: "/generations",
    summary: "What runs now, on all replicas, newest first",
    request: { query: z.strictObject(pageParameters) },
  },
  {
    status: 200,
    description: "a page of open receipts",
    schema: pageSchema(receiptSchema, "Generation"),
  },
);
const verified = { description: "how it went", schema: verificationSchema } as const;
const verify = defineRoute(
  "verify",
  { method: "post", path: "/verify", summary: "Begins to add up the whole ledger again" },
  { status: 202, ...verified },
);
const lastVerify = defineRoute(
  "verify",
  { method: "get", path: "/verify", summary: "How the verification that was begun last went" },
  { status: 200, ...verified },
);

const everything: Omit<ReceiptQuery, "after" | "rowsMax"> = {
  accountId: null,
  keyId: null,
  state: null,
  outcome: null,
  format: null,
  sinceMs: null,
  untilMs: null,
  chargedAtLeastNanos: null,
};

/** Adds the routes that tell what was used, what runs, and whether the ledger is right. */
export function addReportRoutes(app: OperatorApp, { now }: { readonly now: () => number }): void {
  const verification = openVerification(now);
  app.openapi(usage, async (context) => {
    const { account = null, by, since, until } = context.req.valid("query");
    const rows = await context
      .get("ledger")
      .sumUsage({ accountId: account, by, sinceMs: timeOf(since), untilMs: timeOf(until) });
    return context.json({ data: rows.map(usageToJson) }, 200);
  });
  app.openapi(receipts, async (context) => {
    const query = context.req.valid("query");
    const rows = await context.get("ledger").pageReceipts({
      ...everything,
      accountId: query.account ?? null,
      keyId: query.key ?? null,
      outcome: query.outcome ?? null,
      format: query.format ?? null,
      sinceMs: timeOf(query.since),
      untilMs: timeOf(query.until),
      chargedAtLeastNanos: amountOf(query.charged_at_least),
      after: startOf(query.cursor),
      rowsMax: query.limit + 1,
    });
    return context.json(receiptPage(rows, query.limit), 200);
  });
  app.openapi(receipt, async (context) => {
    const found = await context.get("ledger").showReceipt(context.req.valid("param").id);
    return context.json(receiptOfApi(found), 200);
  });
  app.openapi(generations, async (context) => {
    const { cursor, limit } = context.req.valid("query");
    const page = { after: startOf(cursor), rowsMax: limit + 1 };
    const rows = await context
      .get("ledger")
      .pageReceipts({ ...everything, ...page, state: "open" });
    return context.json(receiptPage(rows, limit), 200);
  });
  app.openapi(verify, (context) => {
    const ledger = context.get("ledger");
    verification.begin(() => ledger.verify([]));
    return context.json(verification.show(), 202);
  });
  app.openapi(lastVerify, (context) => context.json(verification.show(), 200));
}

type VerificationJson = z.infer<typeof verificationSchema>;

/** One verification at a time, and how the last one went. */
function openVerification(now: () => number): {
  begin(work: () => Promise<VerifyReport>): void;
  show(): VerificationJson;
} {
  let last: VerificationJson = { state: "never", started_at: null, ended_at: null, report: null };
  const time = (): string => new Date(now()).toISOString();
  return {
    begin(work) {
      if (last.state === "running") return;
      const started = { started_at: time(), ended_at: null, report: null };
      last = { state: "running", ...started };
      work().then(
        ({ accounts, entries, ok, problems, problemsTotal }) => {
          const report = {
            ok,
            entries,
            accounts,
            problems: problems.map((problem) => ({ ...problem })),
            problems_total: problemsTotal,
          };
          last = { ...started, state: "ended", ended_at: time(), report };
        },
        () => (last = { ...started, state: "failed", ended_at: time() }),
      );
    },
    show: () => last,
  };
}

function receiptPage(
  rows: readonly Receipt[],
  limit: number,
): { data: z.infer<typeof receiptSchema>[]; next_cursor: string | null } {
  return pageOf(rows, limit, {
    toJson: receiptOfApi,
    cursorOf: (row) => `${String(row.admittedAtMs)}.${row.requestId}`,
  });
}

function amountOf(text: string | undefined): bigint | null {
  if (text === undefined) return null;
  const nanos = parseCredit(text);
  if (nanos !== null) return nanos;
  throw new ProblemError({
    status: 400,
    code: "invalid_value",
    detail: "`charged_at_least` is no amount of credits: write it as 10 or 0.25.",
    param: "charged_at_least",
  });
}
