import { z } from "@hono/zod-openapi";
import { type EntryRow, entryToJson } from "../ledger/administration/entry-row.ts";
import type { Account } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import { versionHeader } from "./if-match.ts";
import { administer, bodyOf, defineRoute, idOf, type OperatorApp } from "./route.ts";
import { numberOfCursor, pageOf, pageParameters, pageSchema, startOf } from "./paging.ts";
import {
  accountPatchOf,
  accountPatchSchema,
  accountSchema,
  accountToJson,
  creditedSchema,
  creditSchema,
  entrySchema,
  newAccountSchema,
} from "./schemas.ts";
import { accountIds } from "./usage-schemas.ts";

const idParameter = idOf("acct_5nXbTrMv2kQ0aZe");
const answered = { description: "the account", schema: accountSchema } as const;

const list = defineRoute("listAccounts", "get /accounts", {
  summary: "All accounts, newest first",
  request: {
    query: z.strictObject({
      ...pageParameters,
      external_id: z
        .string()
        .optional()
        .openapi({ description: "the account that has it, or none" }),
      id: accountIds.optional(),
      search: z
        .string()
        .max(limits.referenceCharactersMax)
        .refine((text) => !/\p{Cc}/u.test(text), "has a control character")
        .optional()
        .openapi({
          pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]*$`,
          description: "accounts that have it in their name, id or external id, in either case",
        }),
    }),
  },
  answer: { description: "a page of accounts", schema: pageSchema(accountSchema, "Account") },
});
const create = defineRoute("createAccount", "post /accounts", {
  summary: "Makes an account",
  request: bodyOf(newAccountSchema),
  answer: answered,
});
const show = defineRoute("showAccount", "get /accounts/{id}", {
  summary: "One account",
  request: { params: idParameter },
  answer: answered,
});
const change = defineRoute("changeAccount", "patch /accounts/{id}", {
  summary: "Changes an account",
  request: { params: idParameter, headers: versionHeader, ...bodyOf(accountPatchSchema) },
  answer: answered,
});
const credit = defineRoute("addCredit", "post /accounts/{id}/credits", {
  summary: "Adds credit, or takes some back where the amount is negative",
  request: { params: idParameter, ...bodyOf(creditSchema) },
  answer: { description: "the entry and the account", schema: creditedSchema },
});
const entries = defineRoute("listEntries", "get /accounts/{id}/entries", {
  summary: "The account's journal, newest first",
  request: {
    params: idParameter,
    query: z.strictObject({
      ...pageParameters,
      before: z.coerce
        .number()
        .int()
        .min(1)
        .optional()
        .openapi({ description: "entries with a lower number; `cursor` goes first" }),
    }),
  },
  answer: { description: "a page of entries", schema: pageSchema(entrySchema, "Entry") },
});

/** Adds the routes about accounts and their credit. */
export function addAccountRoutes(app: OperatorApp): void {
  app.openapi(list, async (context) => {
    const asked = context.req.valid("query");
    const { cursor, external_id: externalId = null, id: ids = null, limit, search = null } = asked;
    const query = { after: startOf(cursor), rowsMax: limit + 1, externalId, ids, search };
    const rows = await context.get("ledger").pageAccounts(query);
    return context.json(
      pageOf(rows, limit, { toJson: accountToJson, cursorOf: accountCursor }),
      200,
    );
  });
  app.openapi(create, async (context) => {
    const { credit: creditNanos = 0n, name, ...rest } = context.req.valid("json");
    const ledger = await administer(context);
    const account = await ledger.createAccount(name, creditNanos, accountPatchOf(rest));
    return context.json(accountToJson(account), 200);
  });
  app.openapi(show, async (context) => {
    const account = await context.get("ledger").showAccount(context.req.valid("param").id);
    return context.json(accountToJson(account), 200);
  });
  app.openapi(change, async (context) => {
    const to = accountPatchOf(context.req.valid("json"));
    const ledger = await administer(context);
    const account = await ledger.changeAccount(context.req.valid("param").id, to);
    return context.json(accountToJson(account), 200);
  });
  app.openapi(credit, async (context) => {
    const { amount, ...facts } = context.req.valid("json");
    const ledger = await administer(context);
    const { id } = context.req.valid("param");
    const { account, entry } = await ledger.creditAccount(id, amount, facts);
    return context.json({ entry: entryToJson(entry), account: accountToJson(account) }, 200);
  });
  app.openapi(entries, async (context) => {
    const { before = null, cursor, limit } = context.req.valid("query");
    const accountId = context.req.valid("param").id;
    const query = { accountId, before: numberOfCursor(cursor) ?? before, rowsMax: limit + 1 };
    const rows = await context.get("ledger").pageEntries(query);
    return context.json(pageOf(rows, limit, { toJson: entryToJson, cursorOf: entryCursor }), 200);
  });
}

function accountCursor(account: Account): string {
  return `${String(account.createdAtMs)}.${account.id}`;
}

function entryCursor(entry: EntryRow): string {
  return String(entry.sequence);
}
