import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { openBody, openChunks, writeError } from "./chat-answer.ts";
import { parseChatRequest, parseConversation, type ChatRequest } from "./chat-request.ts";
import { RequestError } from "./conversation.ts";
import type { Engine } from "./engine-scheduler.ts";

/** What is served. */
export interface ServerParts {
  /** null while the model is not loaded. */
  readonly engine: () => Engine | null;
  /** Why there is no engine yet, in words for a caller. */
  readonly absence: () => string;
  /** null: every program that reaches the port may ask. */
  readonly apiKey: string | null;
  /** A generation that owes news for longer makes /health fail: the model hangs. */
  readonly hangMs: number;
}

/** Where to listen. */
export interface ServerAddress {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
}

/** A body larger than the context of any model that fits here; the tokens of a smaller one are counted. */
const bodyBytesMax = 64 * 2 ** 20;

/** Serves one model in the Chat Completions format; resolves with the port once it listens. */
export async function listen(parts: ServerParts, { host, port }: ServerAddress): Promise<number> {
  const server = createServer((request, response) => {
    void answer(request, response, parts).catch((error: unknown) => sendError(response, error));
  });
  // An answer may wait long for a slot, and a caller may keep its connection as long as it likes.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  parts: ServerParts,
): Promise<void> {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  if (path === "/health") return sendHealth(response, parts);
  ensureKey(request, parts.apiKey);
  const route = routes[path];
  if (route === undefined) throw new RequestError([404, "not_found_error"], `There is no ${path}.`);
  if (request.method !== route.method)
    throw new RequestError([405, "invalid_request_error"], `${path} takes ${route.method} only.`);
  const engine = parts.engine();
  if (engine === null) throw new RequestError([503, "unavailable_error"], parts.absence());
  await route.serve(engine, { request, response });
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Route {
  readonly method: "GET" | "POST";
  readonly serve: (engine: Engine, exchange: Exchange) => void | Promise<void>;
}

const routes: Readonly<Record<string, Route>> = {
  "/v1/models": { method: "GET", serve: sendModels },
  "/props": { method: "GET", serve: sendProps },
  "/tokenize": { method: "POST", serve: tokenize },
  "/apply-template": { method: "POST", serve: applyTemplate },
  "/v1/chat/completions": { method: "POST", serve: complete },
};

function sendHealth(response: ServerResponse, parts: ServerParts): void {
  const engine = parts.engine();
  if (engine === null)
    return send(response, 503, { status: "loading model", message: parts.absence() });
  const isStuck = engine.silenceMs() > parts.hangMs;
  send(response, isStuck ? 503 : 200, { status: isStuck ? "stuck" : "ok", ...engine.counts() });
}

function sendModels({ facts }: Engine, { response }: Exchange): void {
  const meta = { n_ctx: facts.contextTokens };
  const entry = {
    id: facts.model,
    object: "model",
    created: 0,
    owned_by: "tributary-engine",
    meta,
  };
  send(response, 200, { object: "list", data: [entry] });
}

/** In the shape of llama.cpp's own server, as far as clients read it. */
function sendProps({ facts }: Engine, { response }: Exchange): void {
  send(response, 200, {
    default_generation_settings: { n_ctx: facts.contextTokens },
    total_slots: facts.slots,
    model_alias: facts.model,
    chat_template_caps: { supports_tools: facts.takesTools },
    build_info: facts.build,
  });
}

async function tokenize(engine: Engine, { request, response }: Exchange): Promise<void> {
  const body = (await readJson(request)) as {
    readonly content?: unknown;
    readonly parse_special?: unknown;
  } | null;
  const content = body?.content;
  if (typeof content !== "string")
    throw new RequestError([400, "invalid_request_error"], "content must be a text.");
  send(response, 200, { tokens: engine.tokenize(content, body?.parse_special !== false) });
}

async function applyTemplate(engine: Engine, { request, response }: Exchange): Promise<void> {
  const conversation = parseConversation(await readJson(request));
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const tokens = await engine.buildPrompt(conversation, gone.signal);
  send(response, 200, { prompt: engine.detokenize(tokens) });
}

async function complete(engine: Engine, exchange: Exchange): Promise<void> {
  const { response } = exchange;
  const request = parseChatRequest(await readJson(exchange.request));
  // A client that has left meanwhile is not answered.
  if (response.destroyed) return;
  run(engine, request, response);
}

function run(engine: Engine, request: ChatRequest, response: ServerResponse): void {
  const { conversation, options } = request;
  const head = {
    id: `chatcmpl-${randomBytes(12).toString("hex")}`,
    created: Math.floor(Date.now() / 1_000),
    model: engine.facts.model,
  };
  const write = request.stream ? openChunks(head, request.usage) : openBody(head);
  const outputTokensMax = request.outputTokensMax ?? engine.facts.contextTokens;
  const generation = engine.generate({ conversation, options, outputTokensMax }, (news) => {
    if (news.type === "failed" && !response.headersSent) return sendError(response, news.error);
    if (news.type === "accepted" && request.stream) {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      response.flushHeaders();
    }
    const text = write(news);
    if (news.type === "finished" && !request.stream)
      response.setHeader("content-type", "application/json");
    if (news.type === "finished" || news.type === "failed") response.end(text);
    else if (text !== "" && !response.write(text)) generation.pause();
  });
  response.on("drain", () => generation.resume());
  // A caller that closes the connection is not interested in the rest. After the end there is nothing to cancel.
  response.once("close", () => generation.cancel());
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > bodyBytesMax)
      throw new RequestError([413, "invalid_request_error"], "The body is too large.");
    chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new RequestError([400, "invalid_request_error"], "The body is not JSON.");
  }
}

function ensureKey(request: IncomingMessage, apiKey: string | null): void {
  if (apiKey === null) return;
  const presented = digest(request.headers.authorization ?? "");
  if (timingSafeEqual(presented, digest(`Bearer ${apiKey}`))) return;
  throw new RequestError([401, "authentication_error"], "The key is missing or wrong.");
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function sendError(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return;
  if (response.headersSent) return void response.destroy();
  const failure =
    error instanceof RequestError
      ? error
      : new RequestError([500, "server_error"], "Something went wrong inside the engine.");
  const retry = failure.status === 503 ? { "retry-after": "5" } : {};
  response.writeHead(failure.status, { "content-type": "application/json", ...retry });
  response.end(writeError(failure));
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
