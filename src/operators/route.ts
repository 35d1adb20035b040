import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { createRoute, type OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import type { Context, TypedResponse } from "hono";
import type { ChangedBy } from "../ledger/administration/changed-by.ts";
import type { OperatorRecord } from "../ledger/administration/operator-administration.ts";
import type { SessionRecord } from "../ledger/administration/session-administration.ts";
import type { LedgerAdministration } from "../ledger/ledger.ts";
import type { FileType } from "../ledger/receipt-file.ts";
import { findUnstorable, isStorable, unstorableWords } from "../ledger/storable-text.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { versionOf } from "./if-match.ts";
import { ProblemError } from "./problem.ts";
import { leastRoles, mayAct, type OperationId } from "./roles.ts";

/** What a request has once its operator is known. */
export interface OperatorVariables {
  readonly requestId: string;
  readonly operator: OperatorRecord;
  /** Absent: it came with a token. */
  readonly session?: SessionRecord;
  readonly ledger: StoreLedger;
}

/** The application, as routes are added to it. */
export type OperatorApp = OpenAPIHono<{ Variables: OperatorVariables }>;

/** A request of the API. */
export type OperatorContext = Context<{ Variables: OperatorVariables }>;

const problemAnswer = {
  description: "what is wrong and what to do",
  content: {
    "application/problem+json": {
      schema: z
        .object({
          type: z.string(),
          title: z.string(),
          status: z.int(),
          detail: z.string(),
          code: z.string(),
          request_id: z.string(),
          param: z.string().optional(),
        })
        .openapi("Problem"),
    },
  },
};

/** What a route answers when all is well, as JSON. */
interface Answer<Schema extends z.ZodType> {
  /** Absent: 200. */
  readonly status?: 202;
  readonly description: string;
  readonly schema: Schema;
  /** Media types that it is answered as too, where they are asked for. */
  readonly texts?: readonly string[];
  /** Whether it is a stream of server-sent events, and no JSON. */
  readonly stream?: boolean;
}

/** A route with its role and its problems; `at` is its method and its path. */
export function defineRoute<
  Method extends "get" | "post" | "patch" | "delete",
  Path extends string,
  Route extends Pick<RouteConfig, "summary" | "request" | "security">,
  Schema extends z.ZodType,
>(
  operationId: OperationId,
  at: `${Method} ${Path}`,
  { answer, ...route }: Route & { readonly answer: Answer<Schema> },
) {
  const content = {
    "application/json": { schema: answer.schema },
    ...Object.fromEntries(
      (answer.texts ?? []).map((type) => [type, { schema: z.string() }] as const),
    ),
  };
  const streamed = { "text/event-stream": { schema: answer.schema } };
  const least = leastRoles[operationId];
  const [method, path] = at.split(" ") as [Method, Path];
  return createRoute({
    // The type stays that of the route: handlers read the header by its name, as it is read of any request.
    ...({ ...route, request: requestOf(operationId, method, route.request) } as unknown as Route),
    method,
    path,
    operationId,
    middleware: async (context: OperatorContext, next: () => Promise<void>) => {
      ensureRole(context, operationId);
      const body = route.request?.body;
      if (body !== undefined) ensureJson(context, body.required === true);
      await ensureTexts(context, body !== undefined);
      await next();
    },
    description: least === null ? "Needs no token." : `Needs the role ${least}.`,
    responses: {
      [answer.status ?? 200]: {
        description: answer.description,
        // The type of a route knows its answers in JSON alone.
        content: answer.stream === true ? (streamed as unknown as typeof content) : content,
      },
      "4XX": problemAnswer,
      "5XX": problemAnswer,
    },
  });
}

/** Changes that happen again with each call, under an idempotency-key too. */
const alwaysAgain: readonly OperationId[] = [
  "openSession",
  "endSession",
  "verify",
  "rotateSealKey",
];

/** What the route takes, with the header that all changes have in common. */
function requestOf(
  operationId: OperationId,
  method: string,
  request: RouteConfig["request"],
): RouteConfig["request"] {
  if (method === "get" || alwaysAgain.includes(operationId)) return request;
  const headers = z.object({
    ...(request?.headers instanceof z.ZodObject ? request.headers.shape : {}),
    "idempotency-key": z.string().optional().openapi({
      description:
        "1 to 255 visible ASCII characters: the change happens once, for 30 days; a repeat is answered as the first",
    }),
  });
  return { ...request, headers };
}

/** A file as it is read, a piece at a time, as fast as it is taken. */
export function answerFile(
  type: FileType,
  pieces: AsyncIterable<string | Uint8Array>,
): TypedResponse<never, 200, "json"> {
  const iterator = pieces[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done === true) controller.close();
      else
        controller.enqueue(
          typeof next.value === "string" ? encoder.encode(next.value) : next.value,
        );
    },
    async cancel() {
      await iterator.return?.();
    },
  });
  return answerWith(body, { "content-type": `${type}; charset=utf-8` });
}

/** Server-sent events, as they come. */
export function answerStream(
  events: ReadableStream<Uint8Array>,
): TypedResponse<never, 200, "json"> {
  // A proxy's buffer would hold events back.
  return answerWith(events, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
}

/** A route's type knows its answers in JSON alone; a Response that has no JSON is none of the others. */
function answerWith(
  body: ReadableStream<Uint8Array>,
  headers: Readonly<Record<string, string>>,
): TypedResponse<never, 200, "json"> {
  return new Response(body, { headers }) as unknown as TypedResponse<never, 200, "json">;
}

/** An answer whose JSON was made elsewhere. */
export function answerText({
  text,
}: {
  readonly text: Uint8Array;
}): TypedResponse<never, 200, "json"> {
  const length = String(text.byteLength);
  return answerWith(piecesOf(text), {
    "content-type": "application/json",
    "content-length": length,
  });
}

/** Megabytes at once would keep the event loop from streams for as long as the socket takes them. */
function piecesOf(text: Uint8Array): ReadableStream<Uint8Array> {
  let from = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (from > 0) await setImmediate();
      controller.enqueue(text.subarray(from, from + limits.reportPieceBytes));
      from += limits.reportPieceBytes;
      if (from >= text.byteLength) controller.close();
    },
  });
}

function ensureRole(context: OperatorContext, operationId: OperationId): void {
  const least = leastRoles[operationId];
  if (least === null) return;
  const { name, role } = context.get("operator");
  if (mayAct(role, least)) return;
  throw new ProblemError({
    status: 403,
    code: "role_missing",
    detail: `This needs the role ${least}, and ${JSON.stringify(name)} has ${role}. An owner can make an operator with it.`,
  });
}

/** A body without its type would be passed over, and what it asks for with it; a page of another site sends none. */
function ensureJson({ req }: OperatorContext, required: boolean): void {
  const type = req.header("content-type");
  if (type === undefined && !required && (req.header("content-length") ?? "0") === "0") return;
  if (/^application\/json(?:\s*;|$)/i.test(type ?? "")) return;
  throw new ProblemError({
    status: 415,
    code: "unsupported_media_type",
    detail: "Send a JSON object as the body, with the header `content-type: application/json`.",
  });
}

/** Whatever the route makes of it, no id is a text that no store can keep, and such a text elsewhere is refused by its place. */
async function ensureTexts({ req }: OperatorContext, hasBody: boolean): Promise<void> {
  for (const [param, text] of Object.entries(req.param()))
    if (!isStorable(text))
      throw new ProblemError({
        status: 404,
        code: "not_found",
        detail: `There is nothing with this \`${param}\`: it ${unstorableWords}.`,
        param,
      });
  // What is no JSON is refused where it is read.
  const body: unknown = hasBody ? await req.json().catch(() => null) : null;
  const [query] = Object.entries(req.queries()).find(([, texts]) => !texts.every(isStorable)) ?? [];
  const param = query ?? findUnstorable(body);
  if (param === null) return;
  throw new ProblemError({
    status: 400,
    code: "invalid_value",
    detail: `${param === "" ? "The body" : `\`${param}\``} ${unstorableWords}.`,
    ...(param === "" ? {} : { param }),
  });
}

/** The operators' half of the ledger for a change of this request, once where it has an idempotency-key. */
export async function administer(
  context: OperatorContext,
): Promise<LedgerAdministration<string | null>> {
  const by: ChangedBy = {
    actor: context.get("operator").id,
    once: await readOnce(context),
    ifVersion: versionOf(context.req.header("if-match")),
  };
  return context.get("ledger").administer(by);
}

async function readOnce({ req }: OperatorContext): Promise<ChangedBy["once"]> {
  const key = req.header("idempotency-key");
  if (key === undefined) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new ProblemError({
      status: 400,
      code: "invalid_value",
      detail: "`idempotency-key` has 1 to 255 visible ASCII characters.",
      param: "idempotency-key",
    });
  const body = new Uint8Array(await req.arrayBuffer());
  const bodyHash = new Uint8Array(createHash("sha256").update(body).digest());
  return { route: `${req.method} ${req.path}`, key, bodyHash };
}

/** The parameter of a path that names one thing by its id. */
export function idOf(example: string) {
  return z.object({ id: z.string().openapi({ example }) });
}

/** A time in a query, as RFC 3339 has it, with any offset. */
export const instant = z.iso.datetime({ offset: true });

/** Milliseconds since 1970 of a time that may be left out. */
export function timeOf(text: string | null | undefined): number | null {
  return text === undefined || text === null ? null : Date.parse(text);
}

/** A JSON body that has to be there. */
export function bodyOf<Schema extends z.ZodType>(schema: Schema) {
  return { body: { required: true, content: { "application/json": { schema } } } } as const;
}
