import { z } from "zod";
import { statementSchema } from "../../src/operators/statement-routes.ts";
import { entrySchema } from "../../src/operators/schemas.ts";
import { usageSchema } from "../../src/operators/usage-schemas.ts";
import type { keyScopes } from "../../src/ledger/records.ts";
import { statementForms } from "../../src/ledger/statement-text.ts";
import { limits } from "../../src/limits.ts";
import { chatCompletionBodySchema, chatCompletionChunkSchema } from "./schemas/chat-completions.ts";
import { messagesErrorBodySchema, openaiErrorBodySchema } from "./schemas/error.ts";
import { messageBodySchema, messagesStreamEventSchema } from "./schemas/messages.ts";
import { responsesAnswerSchema, responsesStreamEventSchema } from "./schemas/responses.ts";
import {
  chatCompletionsRequestSchema,
  countTokensRequestSchema,
  messagesRequestSchema,
  responsesRequestSchema,
} from "./schemas/requests.ts";
import {
  accountSchema,
  messagesModelListSchema,
  messagesModelSchema,
  openaiModelListSchema,
  openaiModelSchema,
  receiptSchema,
  tokenCountSchema,
} from "./service-schema.ts";

// What callers reach, in one table: every answer in the tests is held against it, and the OpenAPI document is written from it.

/** A parameter of a path, a query or a header. */
export interface Parameter {
  readonly in: "path" | "query" | "header";
  readonly schema: z.ZodType;
  readonly description: string;
}

/** A route of the first listener. */
export interface CallerRoute {
  readonly method: "get" | "post";
  /** With the names of its parameters in braces. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Whether it is answered without a key. */
  readonly open?: boolean;
  readonly parameters?: Readonly<Record<string, Parameter>>;
  readonly body?: z.ZodType;
  /** Of 200, by media type; where the shape of errors differs by the caller, the answer may too. */
  readonly answers: Readonly<Record<string, z.ZodType>>;
  /** Of 200 where the caller reads the Messages shape; absent: the same. */
  readonly messagesAnswer?: z.ZodType;
  /** Headers of 200, with what they say. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An entry of the journal, a row of usage and a statement: as the operators' API answers them, and nothing more. */
export const sharedSchemas = {
  Entry: entrySchema.strict(),
  Usage: usageSchema.strict(),
  Statement: statementSchema.strict(),
} as const;

const json = "application/json";
const csv = { "text/csv": z.string() };
const page = (row: z.ZodType) =>
  z.strictObject({ data: z.array(row), next_cursor: z.string().nullable() });

const query = (schema: z.ZodType, description: string): Parameter => ({
  in: "query",
  schema,
  description,
});
const paging = {
  limit: query(
    z.int().min(1).max(limits.pageRowsMax).default(limits.pageRowsDefault),
    "rows of the page",
  ),
  cursor: query(z.string().min(1), "`next_cursor` of the page before; absent: the first page"),
};
const time = z.iso.datetime({ offset: true });
const receiptPageSchema = page(receiptSchema).extend({
  archived_until: time.nullable().meta({
    description:
      "receipts of requests that ended before may be archived, and are not here then; null: none are",
  }),
});
const label: Parameter = {
  in: "header",
  schema: z.string(),
  description: "for whom of the account's users it is; on the receipt and in usage",
};
const version: Parameter = {
  in: "header",
  schema: z.string(),
  description:
    "as clients of the Messages format send it: any value, and the answer has that format's shape",
};
const generationHeaders = {
  "x-tributary-output-allowance": "output tokens that were granted",
  "x-ratelimit-limit-requests": "of the key, in any 60 s",
  "x-ratelimit-remaining-requests": "of those that are left",
  "x-ratelimit-reset-requests": "until all are left again, such as 12s",
};
const times = "(?:hour|day|month)";
const others = "(?:account|key|format|label)";

/** Every route of the document. */
export const callerRoutes: readonly CallerRoute[] = [
  {
    method: "post",
    path: "/v1/chat/completions",
    operationId: "createChatCompletion",
    summary: "Generates an answer in the Chat Completions format",
    parameters: { "x-tributary-label": label },
    body: chatCompletionsRequestSchema,
    answers: {
      [json]: chatCompletionBodySchema,
      "text/event-stream": z.union([chatCompletionChunkSchema, openaiErrorBodySchema]),
    },
    headers: generationHeaders,
  },
  {
    method: "post",
    path: "/v1/responses",
    operationId: "createResponse",
    summary: "Generates an answer in the Responses format; nothing is stored",
    parameters: { "x-tributary-label": label },
    body: responsesRequestSchema,
    answers: { [json]: responsesAnswerSchema, "text/event-stream": responsesStreamEventSchema },
    headers: generationHeaders,
  },
  {
    method: "post",
    path: "/v1/messages",
    operationId: "createMessage",
    summary: "Generates an answer in the Messages format",
    parameters: { "x-tributary-label": label, "anthropic-version": version },
    body: messagesRequestSchema,
    answers: {
      [json]: messageBodySchema,
      "text/event-stream": z.union([messagesStreamEventSchema, messagesErrorBodySchema]),
    },
    headers: generationHeaders,
  },
  {
    method: "post",
    path: "/v1/messages/count_tokens",
    operationId: "countTokens",
    summary: "Estimates the input tokens of a message; needs no credit",
    parameters: { "anthropic-version": version },
    body: countTokensRequestSchema,
    answers: { [json]: tokenCountSchema },
  },
  {
    method: "get",
    path: "/v1/models",
    operationId: "listModels",
    summary: "The two legacy names of the one model; new clients use service-llm",
    open: true,
    parameters: { "anthropic-version": version },
    answers: { [json]: openaiModelListSchema },
    messagesAnswer: messagesModelListSchema,
  },
  {
    method: "get",
    path: "/v1/models/{id}",
    operationId: "showModel",
    summary: "Echoes a name; that is no check of what there is",
    open: true,
    parameters: {
      id: {
        in: "path",
        schema: z.string().min(1).max(limits.modelNameCharactersMax),
        description: "any name",
      },
      "anthropic-version": version,
    },
    answers: { [json]: openaiModelSchema },
    messagesAnswer: messagesModelSchema,
  },
  {
    method: "get",
    path: "/account",
    operationId: "showAccount",
    summary: "What the key's account has, may and does",
    answers: { [json]: accountSchema },
  },
  {
    method: "get",
    path: "/account/usage",
    operationId: "sumUsage",
    summary: "Tokens and credit of the requests that have ended, added up",
    parameters: {
      by: query(
        z
          .string()
          .regex(
            new RegExp(`^(?:${times}(?:,${others})?|${others}(?:,(?:${times}|${others}))?)$`, "u"),
          )
          .default("day"),
        "what a row is: hour, day, month, account, key, format or label; or two of them, one time at most",
      ),
      key: query(z.string(), "of one key"),
      format: query(z.string(), "of one format"),
      since: query(time, "requests that ended from then on"),
      until: query(time, "requests that ended before"),
      timezone: query(z.string().default("UTC"), "of days and months, a name of the IANA database"),
      limit: query(
        z.int().min(1).max(limits.usageRowsMax).default(limits.usageRowsMax),
        "rows of the answer, at most; it ends with a whole hour, day or month",
      ),
      cursor: paging.cursor,
    },
    answers: { [json]: page(sharedSchemas.Usage), ...csv },
  },
  {
    method: "get",
    path: "/account/entries",
    operationId: "listEntries",
    summary: "The account's journal, newest first",
    parameters: paging,
    answers: { [json]: page(sharedSchemas.Entry) },
  },
  {
    method: "get",
    path: "/account/statements/{month}",
    operationId: "showStatement",
    summary: "What moved the account's balance in a month, as JSON, CSV or a page to print",
    parameters: {
      month: {
        in: "path",
        schema: z.string().regex(/^\d{4}-(?:0[1-9]|1[0-2])$/u),
        description: "of UTC, such as 2026-10",
      },
      format: query(z.enum(statementForms), "goes before what `Accept` asks for"),
    },
    answers: { [json]: sharedSchemas.Statement, ...csv, "text/html": z.string() },
  },
  {
    method: "get",
    path: "/receipts",
    operationId: "listReceipts",
    summary: "Receipts of the account, by the time of admission, newest first",
    parameters: {
      ...paging,
      key: query(z.string(), "of one key"),
      outcome: query(z.string(), "how they ended, such as completed"),
      format: query(z.string(), "of one format"),
      label: query(z.string(), "of one label"),
      since: query(time, "requests that were admitted from then on"),
      until: query(time, "requests that were admitted before"),
      ended_since: query(time, "requests that ended from then on, as usage counts them"),
      ended_until: query(time, "requests that ended before"),
      charged_at_least: query(z.string().regex(/^-?\d+(?:\.\d{1,9})?$/u), "credits, such as 0.5"),
    },
    answers: { [json]: receiptPageSchema, ...csv, "application/jsonl": z.string() },
  },
  {
    method: "get",
    path: "/receipts/{id}",
    operationId: "showReceipt",
    summary: "What one request of the account reserved and was charged",
    parameters: {
      id: { in: "path", schema: z.string().min(1), description: "`x-request-id` of its answer" },
    },
    answers: { [json]: receiptSchema },
  },
  {
    method: "get",
    path: "/openapi.json",
    operationId: "showDocument",
    summary: "This document",
    open: true,
    answers: { [json]: z.looseObject({ openapi: z.literal("3.1.0") }) },
  },
];

/** The scope that a key needs for an operation, of the route's method: to generate it spends, to look it reads. */
export const scopeOf = (route: CallerRoute): (typeof keyScopes)[number] | null => {
  if (route.open === true || route.path === "/v1/messages/count_tokens") return null;
  return route.method === "post" ? "generate" : "read";
};

/** The route of a request, or null for one that is not in the document. */
export function callerRouteOf(method: string, path: string): CallerRoute | null {
  const asked = method === "HEAD" ? "get" : method.toLowerCase();
  const found = callerRoutes.find(
    (route) =>
      route.method === asked &&
      new RegExp(`^${route.path.replaceAll(/\{\w+\}/gu, ".+")}$`, "u").test(path),
  );
  return found ?? null;
}
