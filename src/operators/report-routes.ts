import { z } from "@hono/zod-openapi";
import type { ReceiptQuery } from "../ledger/administration/lists.ts";
import type { Receipt } from "../ledger/receipt.ts";
import { fileTypeOf, receiptLines } from "../ledger/receipt-file.ts";
import type { UsageQuery } from "../ledger/usage/usage-query.ts";
import { usageLines, type UsagePrint } from "../ledger/usage/usage-json.ts";
import { numberOfCursor, pageOf, pageParameters, startOf } from "./paging.ts";
import {
  answerFile,
  answerText,
  defineRoute,
  idOf,
  instant,
  type OperatorApp,
  timeOf,
} from "./route.ts";
import { amount, isoTime, receiptOfApi, receiptSchema, time } from "./schemas.ts";
import { usageParameters, usageSumsSchema } from "./usage-schemas.ts";

const receiptPageSchema = z
  .object({
    data: z.array(receiptSchema),
    next_cursor: z.string().nullable(),
    archived_until: time.nullable().openapi({
      description:
        "receipts of requests that ended before may be archived, and are not here then; null: none are",
    }),
  })
  .openapi("ReceiptPage");
const usage = defineRoute("sumUsage", "get /usage", {
  summary: "Tokens and credit of the requests that have ended, added up for each account",
  request: { query: usageParameters },
  answer: { description: "the sums", schema: usageSumsSchema, texts: ["text/csv"] },
});
const receipts = defineRoute("listReceipts", "get /receipts", {
  summary: "Receipts, by the time of admission, newest first",
  request: {
    query: z.strictObject({
      ...pageParameters,
      account: z.string().optional(),
      key: z.string().optional(),
      outcome: z.string().optional(),
      format: z.string().optional(),
      label: z.string().optional(),
      since: instant
        .optional()
        .openapi({ description: "requests that were admitted from then on" }),
      until: instant.optional().openapi({ description: "requests that were admitted before" }),
      ended_since: instant
        .optional()
        .openapi({ description: "requests that ended from then on, as usage counts them" }),
      ended_until: instant.optional().openapi({ description: "requests that ended before" }),
      charged_at_least: amount.optional(),
    }),
  },
  answer: {
    description: "a page of receipts; as a file all of them, one account after another",
    schema: receiptPageSchema,
    texts: ["text/csv", "application/jsonl"],
  },
});
const receipt = defineRoute("showReceipt", "get /receipts/{id}", {
  summary: "What one request reserved and was charged",
  request: { params: idOf("req_5nXbTrMv2kQ0aZe") },
  answer: { description: "the receipt", schema: receiptSchema },
});
/** A query that leaves no receipt out. */
export const everyReceipt: Omit<ReceiptQuery, "after" | "rowsMax"> = {
  accountId: null,
  keyId: null,
  state: null,
  outcome: null,
  format: null,
  label: null,
  sinceMs: null,
  untilMs: null,
  endedSinceMs: null,
  endedUntilMs: null,
  chargedAtLeastNanos: null,
};

function accountsOf(
  ids: readonly string[] | undefined,
): Pick<UsageQuery, "accountId" | "accountIds"> {
  const [first = null] = ids ?? [];
  return ids === undefined || ids.length === 1
    ? { accountId: first }
    : { accountId: null, accountIds: ids };
}

/** Adds the routes that tell what was used. */
export function addReportRoutes(app: OperatorApp): void {
  app.openapi(usage, async (context) => {
    const { account, by, cursor, format, key, limit, since, timezone, until } =
      context.req.valid("query");
    const ledger = context.get("ledger");
    const wanted = {
      ...accountsOf(account),
      keyId: key ?? null,
      format: format ?? null,
      sinceMs: numberOfCursor(cursor) ?? timeOf(since),
      untilMs: timeOf(until),
      by,
      timezone,
      rowsMax: limit,
    };
    if (fileTypeOf(context.req.header("accept")) === "text/csv")
      return answerFile(
        "text/csv",
        usageLines((page: UsagePrint) => ledger.printUsage(page), wanted),
      );
    // `usageToJson` has the members of the schema; the tests hold its answers against it.
    return answerText(await ledger.printUsage({ ...wanted, form: "application/json" }));
  });
  app.openapi(receipts, async (context) => {
    const query = context.req.valid("query");
    const ledger = context.get("ledger");
    const wanted = {
      ...everyReceipt,
      accountId: query.account ?? null,
      keyId: query.key ?? null,
      outcome: query.outcome ?? null,
      format: query.format ?? null,
      label: query.label ?? null,
      sinceMs: timeOf(query.since),
      untilMs: timeOf(query.until),
      endedSinceMs: timeOf(query.ended_since),
      endedUntilMs: timeOf(query.ended_until),
      chargedAtLeastNanos: query.charged_at_least ?? null,
    };
    const type = fileTypeOf(context.req.header("accept"));
    if (type !== null) {
      const accountIds =
        wanted.accountId === null
          ? (await ledger.listAccounts()).map(({ id }) => id)
          : [wanted.accountId];
      return answerFile(type, receiptLines(ledger, { accountIds, query: wanted }, type));
    }
    const page = { after: startOf(query.cursor), rowsMax: query.limit + 1 };
    const rows = await ledger.pageReceipts({ ...wanted, ...page });
    const archivedMs = await ledger.archivedUntil(wanted.accountId);
    const archived_until = archivedMs === null ? null : isoTime(archivedMs);
    return context.json({ ...receiptPage(rows, query.limit), archived_until }, 200);
  });
  app.openapi(receipt, async (context) => {
    const found = await context.get("ledger").showReceipt(context.req.valid("param").id);
    return context.json(receiptOfApi(found), 200);
  });
}

function receiptPage(
  rows: readonly Receipt[],
  limit: number,
): { data: z.infer<typeof receiptSchema>[]; next_cursor: string | null } {
  return pageOf(rows, limit, {
    toJson: receiptOfApi,
    cursorOf: receiptCursor,
  });
}

/** Where a page that begins behind this receipt begins. */
export function receiptCursor({ admittedAtMs, requestId }: Receipt): string {
  return `${String(admittedAtMs)}.${requestId}`;
}
