import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { performance } from "node:perf_hooks";

/** One thing that the scripted deployment does while it answers a generation. When the steps run out it ends the answer. */
export type Step =
  /** Raw bytes of the body; status 200 and the event stream's headers go out before, if they have not yet. */
  | { readonly type: "write"; readonly bytes: string | Uint8Array }
  | { readonly type: "headers"; readonly status: number; readonly headers: OutgoingHeaders }
  /** Waits for the promise or for the peer to leave, whichever is first. */
  | { readonly type: "wait"; readonly until: Promise<unknown> }
  /** Says nothing more until the peer leaves. */
  | { readonly type: "hang" }
  /** A TCP reset, at whatever point the answer is. */
  | { readonly type: "reset" }
  /** A reset before the request's body was read; only as the first step. */
  | { readonly type: "reset-before-body" }
  /** Closes the connection in an orderly way without ending the answer. */
  | { readonly type: "close" }
  /** `count` text deltas as fast as the peer reads, `text` of each with its number; respects back-pressure. */
  | { readonly type: "numbers"; readonly count: number; readonly text: (index: number) => string };

type OutgoingHeaders = Readonly<Record<string, string>>;

/** How a request's answer ended. */
export interface AnswerEnd {
  /** Whether the peer left before the answer was written. */
  readonly byPeer: boolean;
  /** `performance.now()` of it. */
  readonly atMs: number;
}

/** One request for a generation, as it arrived. */
export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body parsed; null when it is no JSON. */
  readonly json: unknown;
  /** How many requests this request's connection has carried, this one included. */
  readonly requestOfConnection: number;
  readonly atMs: number;
  /** Bytes of the answer's body that were handed to the socket so far. */
  readonly bytesWritten: number;
  readonly ended: Promise<AnswerEnd>;
}

/** A JSON answer to a GET, or a function of the number of times it was asked (from 1). */
export type RouteAnswer = RouteReply | ((asked: number) => RouteReply);

/** One such answer. */
export interface RouteReply {
  readonly status?: number;
  readonly headers?: OutgoingHeaders;
  readonly body: unknown;
}

/** A real HTTP server that speaks like an inference engine and does what a test tells it. */
export interface ScriptedDeployment extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/v1` */
  readonly url: string;
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  /** Requests for generations, in the order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** Paths of all other requests, in the order of arrival, as `GET /v1/models`. */
  readonly otherRequests: readonly string[];
  /** Connections that are open now. */
  readonly openConnections: number;
  readonly connectionsAccepted: number;
  /** What the next request without an answer of its own gets; once for each call. */
  answerNext(...steps: readonly Step[]): void;
  /** What every request gets for which `answerNext` left nothing; the default is a short text. */
  answerAlways(...steps: readonly Step[]): void;
  /** What requests get whose body contains the text, before all others; for many at once. */
  answerFor(text: string, ...steps: readonly Step[]): void;
  /** What every request gets from now on, chosen by what it holds; before all others. */
  answerBy(choose: (request: RecordedRequest) => readonly Step[]): void;
  /** Answers a path other than that of generations; `/v1/models` is there from the start. */
  route(method: "GET" | "POST", path: string, answer: RouteAnswer): void;
  /** Resolves with the request number `index` (from 0) as soon as it has arrived. */
  request(index: number): Promise<RecordedRequest>;
}

/** Settings of a scripted deployment. */
export interface ScriptedDeploymentSettings {
  readonly model?: string;
  readonly ownedBy?: string;
  readonly contextTokens?: number | null;
  /** Status of its list of models; 200 where it is left out. */
  readonly modelsStatus?: number;
  /** A fixed port, for a deployment that comes up late; 0 takes any. */
  readonly port?: number;
}

/** Starts a scripted deployment on a free loopback port. */
export async function startScriptedDeployment(
  settings: ScriptedDeploymentSettings = {},
): Promise<ScriptedDeployment> {
  const requests: RecordedRequest[] = [];
  const otherRequests: string[] = [];
  const queued: (readonly Step[])[] = [];
  const marked = new Map<string, readonly Step[]>();
  const waiting = new Map<number, PromiseWithResolvers<RecordedRequest>>();
  const routes = new Map<string, { answer: RouteAnswer; asked: number }>();
  const sockets = new Map<Socket, number>();
  let always: readonly Step[] = textAnswer("Hello from the deployment.");
  let chosen: ((request: RecordedRequest) => readonly Step[]) | null = null;
  let connectionsAccepted = 0;

  const server = createServer((request, response) => {
    void respond(request, response).catch(() => request.socket.destroy());
  });
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.on("connection", (socket) => {
    connectionsAccepted += 1;
    sockets.set(socket, 0);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    const count = (sockets.get(request.socket) ?? 0) + 1;
    sockets.set(request.socket, count);
    if (request.method !== "POST" || !path.endsWith("/chat/completions")) {
      otherRequests.push(`${request.method} ${path}`);
      answerRoute(request, response);
      return;
    }
    // Which answer it is shows in the body, where answers are chosen by it.
    const early = marked.size === 0 && chosen === null ? (queued.shift() ?? always) : null;
    if (early?.[0]?.type === "reset-before-body") {
      request.socket.resetAndDestroy();
      return;
    }
    const body = await readText(request);
    const recorded = new LiveRequest(request, body, count);
    requests.push(recorded);
    waiting.get(requests.length - 1)?.resolve(recorded);
    await play(
      early ?? chosen?.(recorded) ?? markedFor(body) ?? queued.shift() ?? always,
      recorded,
      response,
    );
  }

  function markedFor(body: string): readonly Step[] | undefined {
    for (const [text, steps] of marked) if (body.includes(text)) return steps;
    return undefined;
  }

  function answerRoute(request: IncomingMessage, response: ServerResponse): void {
    const route = routes.get(`${request.method} ${request.url}`);
    request.resume();
    if (route === undefined) {
      response.writeHead(404, { "content-type": "application/json" });
      response.end('{"detail":"Not Found"}');
      return;
    }
    route.asked += 1;
    const reply = typeof route.answer === "function" ? route.answer(route.asked) : route.answer;
    response.writeHead(reply.status ?? 200, {
      "content-type": "application/json",
      ...reply.headers,
    });
    response.end(typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body));
  }

  routes.set("GET /v1/models", {
    answer: { status: settings.modelsStatus ?? 200, body: modelsBody(settings) },
    asked: 0,
  });
  server.listen(settings.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a listening TCP server has an AddressInfo
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: `${origin}/v1`,
    origin,
    requests,
    otherRequests,
    get openConnections() {
      return sockets.size;
    },
    get connectionsAccepted() {
      return connectionsAccepted;
    },
    answerNext: (...steps) => void queued.push(steps),
    answerFor: (text, ...steps) => void marked.set(text, steps),
    answerBy: (choose) => void (chosen = choose),
    answerAlways: (...steps) => void (always = steps),
    route: (method, path, answer) => void routes.set(`${method} ${path}`, { answer, asked: 0 }),
    async request(index) {
      const there = requests[index];
      if (there !== undefined) return there;
      const promise = waiting.get(index) ?? Promise.withResolvers<RecordedRequest>();
      waiting.set(index, promise);
      return promise.promise;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets.keys()) socket.destroy();
      await closed;
    },
  };
}

class LiveRequest implements RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly json: unknown;
  readonly requestOfConnection: number;
  readonly atMs = performance.now();
  readonly end = Promise.withResolvers<AnswerEnd>();
  readonly ended = this.end.promise;
  bytesWritten = 0;

  constructor(request: IncomingMessage, body: string, requestOfConnection: number) {
    this.path = request.url ?? "";
    this.headers = request.headers;
    this.body = body;
    this.json = parseOrNull(body);
    this.requestOfConnection = requestOfConnection;
  }
}

async function play(
  steps: readonly Step[],
  request: LiveRequest,
  response: ServerResponse,
): Promise<void> {
  const left = Promise.withResolvers<void>();
  let ours = false;
  response.on("close", () => {
    request.end.resolve({
      byPeer: !ours && !response.writableFinished,
      atMs: performance.now(),
    });
    left.resolve();
  });

  async function write(bytes: string | Uint8Array): Promise<void> {
    if (!response.headersSent) writeHead(response, 200, { "content-type": "text/event-stream" });
    request.bytesWritten += Buffer.byteLength(bytes);
    if (!response.write(bytes)) await Promise.race([once(response, "drain"), left.promise]);
  }

  for (const step of steps) {
    if (response.destroyed) return;
    switch (step.type) {
      case "write":
        await write(step.bytes);
        break;
      case "headers":
        writeHead(response, step.status, step.headers);
        break;
      case "wait":
        await Promise.race([step.until, left.promise]);
        break;
      case "hang":
        await left.promise;
        break;
      case "reset":
      case "reset-before-body":
        ours = true;
        response.socket?.resetAndDestroy();
        return;
      case "close":
        ours = true;
        response.socket?.end();
        return;
      case "numbers":
        for (let index = 0; index < step.count && !response.destroyed; index += 1) {
          await write(frame({ content: step.text(index) }));
        }
        break;
      default:
        step satisfies never;
    }
  }
  if (response.destroyed) return;
  if (!response.headersSent) writeHead(response, 200, { "content-type": "text/event-stream" });
  response.end();
}

function writeHead(response: ServerResponse, status: number, headers: OutgoingHeaders): void {
  response.writeHead(status, headers);
  response.flushHeaders();
}

/** Usage as an engine reports it. */
export interface AnswerUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens?: number;
  readonly reasoningTokens?: number;
}

/** What a scripted answer holds besides its text. */
export interface TextAnswerParts {
  /** null: the deployment reports none. */
  readonly usage?: AnswerUsage | null;
  readonly reasoning?: string;
  readonly toolCalls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: string;
  }[];
  /** null: the stream ends without a finish. */
  readonly finish?: string | null;
  /** Characters of each delta; all at once when it is left out. */
  readonly pieceCharacters?: number;
}

/** The steps of a whole, ordinary answer: reasoning, text, tool calls, finish, usage, `[DONE]`. */
export function textAnswer(text: string, parts: TextAnswerParts = {}): readonly Step[] {
  const frames = [frame({ role: "assistant", content: "" })];
  for (const piece of piecesOf(parts.reasoning ?? "", parts.pieceCharacters)) {
    frames.push(frame({ reasoning_content: piece }));
  }
  for (const piece of piecesOf(text, parts.pieceCharacters)) frames.push(frame({ content: piece }));
  for (const [index, call] of (parts.toolCalls ?? []).entries()) {
    const named = { name: call.name, arguments: "" };
    frames.push(frame({ tool_calls: [{ index, id: call.id, type: "function", function: named }] }));
    for (const piece of piecesOf(call.arguments, parts.pieceCharacters)) {
      frames.push(frame({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  }
  const calls = (parts.toolCalls ?? []).length > 0;
  const reason = parts.finish === undefined ? (calls ? "tool_calls" : "stop") : parts.finish;
  if (reason !== null) frames.push(frame({}, reason));
  const usage = parts.usage === undefined ? ordinaryUsage : parts.usage;
  if (usage !== null) frames.push(usageFrame(usage));
  frames.push("data: [DONE]\n\n");
  return frames.map((bytes) => ({ type: "write", bytes }));
}

const ordinaryUsage: AnswerUsage = { promptTokens: 12, completionTokens: 7 };

/** One delta of a choice, as a step. */
export function delta(content: Readonly<Record<string, unknown>>): Step {
  return { type: "write", bytes: frame(content) };
}

/** The chunk that carries the finish reason, the usage after it and `[DONE]`, as one step. */
export function finish(reason: string, usage: AnswerUsage | null = ordinaryUsage): Step {
  const end = usage === null ? "" : usageFrame(usage);
  return { type: "write", bytes: `${frame({}, reason)}${end}data: [DONE]\n\n` };
}

/** An answer with a status and a body, JSON when it is no string. */
export function statusAnswer(
  status: number,
  body: unknown,
  headers: OutgoingHeaders = {},
): readonly Step[] {
  return [
    { type: "headers", status, headers: { "content-type": "application/json", ...headers } },
    { type: "write", bytes: typeof body === "string" ? body : JSON.stringify(body) },
  ];
}

/** Waits for a test to say go. */
export function openGate(): { readonly step: Step; open(): void } {
  const gate = Promise.withResolvers<void>();
  return { step: { type: "wait", until: gate.promise }, open: gate.resolve };
}

/** One frame of a chat completion stream. */
export function frame(content: Readonly<Record<string, unknown>>, reason: string | null = null) {
  const choice = { index: 0, delta: content, logprobs: null, finish_reason: reason };
  return `data: ${JSON.stringify({ ...chunkHead, choices: [choice] })}\n\n`;
}

function usageFrame(usage: AnswerUsage): string {
  const body = {
    prompt_tokens: usage.promptTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    completion_tokens: usage.completionTokens,
    ...(usage.cachedTokens === undefined
      ? {}
      : { prompt_tokens_details: { cached_tokens: usage.cachedTokens } }),
    ...(usage.reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } }),
  };
  return `data: ${JSON.stringify({ ...chunkHead, choices: [], usage: body })}\n\n`;
}

const chunkHead = {
  id: "chatcmpl-scripted",
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  model: "scripted-model",
};

function piecesOf(text: string, characters: number | undefined): readonly string[] {
  if (text === "") return [];
  if (characters === undefined) return [text];
  const pieces: string[] = [];
  for (let index = 0; index < text.length; index += characters) {
    pieces.push(text.slice(index, index + characters));
  }
  return pieces;
}

function modelsBody(settings: ScriptedDeploymentSettings): unknown {
  const contextTokens = settings.contextTokens === undefined ? 131_072 : settings.contextTokens;
  const model = {
    id: settings.model ?? "scripted-model",
    object: "model",
    created: 1_760_000_000,
    owned_by: settings.ownedBy ?? "vllm",
    ...(contextTokens === null ? {} : { max_model_len: contextTokens }),
  };
  return { object: "list", data: [model] };
}

async function readText(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
