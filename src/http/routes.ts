import { Failure, failureKinds, type FailureKind } from "../failure.ts";
import { handleAccount } from "./account-handler.ts";
import { handleCountTokens } from "./count-tokens-handler.ts";
import { handleDocument } from "./document-handler.ts";
import type { Exchange } from "./exchange.ts";
import { handleGeneration } from "./generation-handler.ts";
import { handleAlive, handleMetrics, handleReady } from "./health-handler.ts";
import { handlePage, handleStart } from "./page-handler.ts";
import { handleModelList, handleModelLookup } from "./models-handler.ts";
import { handleReceipt } from "./receipt-handler.ts";
import {
  handleEntries,
  handleReceiptList,
  handleStatement,
  handleUsage,
} from "./report-handlers.ts";
import type { Service } from "./service.ts";

/** Answers one request; a thrown Failure becomes its answer. */
export type Handler = (exchange: Exchange, service: Service) => Promise<void> | void;

/** What a path and method lead to. `pattern` is the route's name in logs and metrics. */
export interface Route {
  readonly pattern: string;
  readonly handler: Handler;
}

const generation =
  (
    format: "chat-completions" | "responses" | "messages",
    preferredKey: "x-api-key" | "bearer",
  ): Handler =>
  (exchange, service) =>
    handleGeneration(exchange, { format, preferredKey }, service);

const table: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  "/v1/chat/completions": { POST: generation("chat-completions", "bearer") },
  "/v1/responses": { POST: generation("responses", "bearer") },
  "/v1/messages": { POST: generation("messages", "x-api-key") },
  "/v1/messages/count_tokens": { POST: handleCountTokens },
  "/v1/models": { GET: handleModelList },
  "/account": { GET: handleAccount },
  "/account/usage": { GET: handleUsage },
  "/account/entries": { GET: handleEntries },
  "/receipts": { GET: handleReceiptList },
  "/openapi.json": { GET: handleDocument },
  "/healthz": { GET: handleAlive },
  "/readyz": { GET: handleReady },
  "/metrics": { GET: handleMetrics },
  "/": { GET: handleStart },
  "/api/hello": { GET: handleAlive },
};

/** Paths of which the rest names something. */
const prefixes: readonly {
  readonly prefix: string;
  readonly name: string;
  readonly handle: (exchange: Exchange, rest: string, service: Service) => Promise<void> | void;
}[] = [
  { prefix: "/v1/models/", name: ":id", handle: handleModelLookup },
  { prefix: "/receipts/", name: ":id", handle: handleReceipt },
  { prefix: "/account/statements/", name: ":month", handle: handleStatement },
];
const pagePrefix = "/console/";

/** Requests whose counters begin at 0: each route, as it is answered when all is well and when something fails. */
export function knownRequests(): readonly (readonly [string, string, string])[] {
  return Object.entries(table).flatMap(([route, methods]) =>
    Object.keys(methods).flatMap((method) =>
      statusesOf(method, route).map((status) => [method, route, String(status)] as const),
    ),
  );
}

function statusesOf(method: string, route: string): readonly number[] {
  if (method === "GET") return [200, 500, 503];
  const kinds: readonly FailureKind[] = Object.values(failureKinds);
  const failed = kinds.map(({ messagesStatus, status }) =>
    route.startsWith("/v1/messages") ? (messagesStatus ?? status) : status,
  );
  return [200, ...new Set(failed)];
}

/** The route of a request, or a Failure: 404, 405 or 426. */
export function findRoute(method: string, path: string, upgrade: boolean): Route {
  for (const { handle, name, prefix } of prefixes)
    if (path.startsWith(prefix) && path.length > prefix.length)
      return pick(prefix + name, method, {
        GET: (exchange, service) => handle(exchange, path.slice(prefix.length), service),
      });
  if (path.startsWith(pagePrefix)) return pick(`${pagePrefix}:file`, method, { GET: handlePage });
  // Not offered: trailing slashes, other cases; the vendors' own services refuse them too.
  const methods = Object.hasOwn(table, path) ? table[path] : undefined;
  if (methods === undefined) throw notFound(path);
  if (path === "/v1/responses" && method === "GET" && upgrade)
    throw new Failure(
      "upgrade_required",
      "WebSockets are not offered: send POST /v1/responses with `stream: true`.",
    );
  return pick(path, method, methods);
}

function pick(pattern: string, method: string, methods: Readonly<Record<string, Handler>>): Route {
  const handler = methods[method === "HEAD" && "GET" in methods ? "GET" : method];
  if (handler !== undefined) return { pattern, handler };
  const allowed = Object.keys(methods).flatMap((name) =>
    name === "GET" ? ["GET", "HEAD"] : [name],
  );
  throw new Failure(
    "method_not_allowed",
    `${method} is not offered here. Use ${allowed.join(" or ")}.`,
    { allow: allowed.join(", ") },
  );
}

function notFound(path: string): Failure {
  if (/^\/v1\/v1(?:\/|$)/.test(path))
    return new Failure(
      "not_found",
      "The path has /v1 twice. Clients of the Chat Completions and Responses formats use the base address ending in " +
        "/v1; clients of the Messages format use it without /v1, since their SDK adds it.",
    );
  if (path.startsWith("/v1/"))
    return new Failure(
      "not_found",
      "This service does not offer this path. It offers POST /v1/chat/completions, /v1/responses, /v1/messages, " +
        "/v1/messages/count_tokens and GET /v1/models.",
    );
  return new Failure(
    "not_found",
    "There is nothing here. The paths of the service begin with /v1/; /account, /account/usage, /account/entries, /account/statements/{month}, /receipts and /receipts/{request id} tell what a key's account has and has paid; /openapi.json describes all of them.",
  );
}
