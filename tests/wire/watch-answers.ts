import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { openUnchunker } from "./unchunk.ts";

// Every test file loads this, so it loads next to nothing: check-answer.ts brings the schemas where a service is started.

/** What is known of an answer when its first byte is written. */
export interface AnswerHead {
  readonly method: string;
  /** Without query string. */
  readonly path: string;
  readonly shape: "openai" | "messages";
  readonly status: number;
  /** "" for none. */
  readonly contentType: string;
  /** null where it is not known. */
  readonly requestBody: string | null;
}

/** Looks at one answer while it is written. */
export interface AnswerInspection {
  write(text: string): void;
  /** The service has said all that it wanted to say. Not called for an answer that breaks off. */
  end(): void;
}

type Inspector = (head: AnswerHead, report: (problem: string) => void) => AnswerInspection;

let inspector: Inspector | null = null;
let problems: string[] = [];
let answers = 0;
/** Answers of services in this process, which `fetch` in this process is about to see again. */
const seenHere = new Set<string>();

const problemsPerAnswerMax = 3;
const problemsShownMax = 10;
const chatCompletionsPath = "/v1/chat/completions";

/** Says who looks at the answers of services. */
export function inspectWith(chosen: Inspector): void {
  inspector = chosen;
}

/** Adds to what was wrong. */
export function reportWireProblem(problem: string): void {
  problems.push(problem);
}

/** What was wrong with answers since the last call. */
export function takeWireProblems(): readonly string[] {
  const taken = problems;
  problems = [];
  return taken;
}

/** Throws when an answer was wrong since the last look. */
export function ensureNoWireProblems(): void {
  const taken = takeWireProblems();
  if (taken.length === 0) return;
  const shown = taken.slice(0, problemsShownMax);
  if (shown.length < taken.length) shown.push(`and ${String(taken.length - shown.length)} more`);
  throw new Error(`what the service wrote is not what it may write:\n${shown.join("\n")}`);
}

/** How many answers were looked at. */
export function countInspectedAnswers(): number {
  return answers;
}

/** The service names each answer; no server that only plays a part in a test does. */
function isOfService(requestId: unknown): requestId is string {
  return typeof requestId === "string" && requestId.startsWith("req_");
}

/** One answer, from the first byte on. */
interface Watched {
  write(chunk: unknown, encoding?: unknown): void;
  end(): void;
}

/**
 * Opens the look at one answer; an inspection that throws is a problem like any other. `chunked`: what is written are the
 * chunks of the body, made by the service itself.
 */
function openInspection(head: AnswerHead, chunked = false): Watched {
  const decoder = new TextDecoder();
  const unchunker = chunked ? openUnchunker() : null;
  let reported = 0;

  function report(problem: string): void {
    reported += 1;
    if (reported <= problemsPerAnswerMax)
      reportWireProblem(`${head.method} ${head.path} ${String(head.status)}: ${problem}`);
  }

  function attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      report(`it could not be looked at: ${String(error)}`);
    }
  }

  answers += 1;
  if (inspector === null) {
    report("nobody looks at it: call inspectWith where the service is started");
    return { write: () => undefined, end: () => undefined };
  }
  const inspection = inspector(head, report);

  function write(chunk: unknown, encoding: unknown): void {
    if (unchunker === null && typeof chunk === "string" && typeof encoding !== "string")
      return inspection.write(chunk);
    const bytes = bytesOf(chunk, encoding);
    if (bytes === null) return;
    for (const data of unchunker?.take(bytes) ?? [bytes])
      inspection.write(decoder.decode(data, { stream: true }));
  }

  function end(): void {
    if (unchunker?.ended === false) report("its last chunk is missing");
    inspection.end();
  }

  return {
    write: (chunk, encoding) => attempt(() => write(chunk, encoding)),
    end: () => attempt(end),
  };
}

function bytesOf(chunk: unknown, encoding: unknown): Uint8Array | null {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk !== "string") return null;
  return Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
}

/** Whether the head promises chunks that Node will not make: there is nothing public that says what the head promises. */
function isChunkedByService(response: ServerResponse): boolean {
  const head = String(Reflect.get(response, "_header"));
  return !response.chunkedEncoding && /\r\ntransfer-encoding: chunked\r\n/iu.test(head);
}

function shapeOf(path: string, anthropicVersion: boolean): AnswerHead["shape"] {
  return path.startsWith("/v1/messages") || anthropicVersion ? "messages" : "openai";
}

function pathOf(target: string): string {
  const path = target.split("?", 1)[0] ?? "/";
  return /^https?:/iu.test(path) ? new URL(path).pathname : path;
}

/** What a service in this process writes is looked at as it is written. */
function watchResponse(request: IncomingMessage, response: ServerResponse): void {
  const path = pathOf(request.url ?? "/");
  const body: Uint8Array[] = [];
  if (path === chatCompletionsPath) keepBody(request, body);
  let watched: Watched | null | undefined;

  function begin(): Watched | null {
    const requestId = response.getHeader("x-request-id");
    if (!isOfService(requestId)) return null;
    seenHere.add(requestId);
    const requestBody = path === chatCompletionsPath ? Buffer.concat(body).toString("utf8") : null;
    body.length = 0;
    const head = {
      method: request.method ?? "GET",
      path,
      shape: shapeOf(path, request.headers["anthropic-version"] !== undefined),
      status: response.statusCode,
      contentType: String(response.getHeader("content-type") ?? ""),
      requestBody,
    };
    return openInspection(head, isChunkedByService(response));
  }

  const write = response.write.bind(response) as (...given: readonly unknown[]) => boolean;
  const end = response.end.bind(response) as (...given: readonly unknown[]) => unknown;
  response.once("finish", () => {
    if (watched === undefined && isOfService(response.getHeader("x-request-id")))
      reportWireProblem(`${request.method ?? ""} ${path}: it was written where nobody looks`);
  });
  let inResponse = false;
  watchDirectWrites(request.socket, response, (given) => {
    if (!inResponse) watched?.write(given[0], given[1]);
  });
  response.write = (...given: readonly unknown[]) => {
    inResponse = true;
    const more = write(...given);
    inResponse = false;
    if (watched === undefined) watched = begin();
    watched?.write(given[0], given[1]);
    return more;
  };
  response.end = (...given: readonly unknown[]) => {
    inResponse = true;
    end(...given);
    inResponse = false;
    if (watched === undefined) watched = begin();
    watched?.write(given[0], given[1]);
    watched?.end();
    return response;
  };
}

type DirectWrite = (given: readonly unknown[]) => void;
const directWrites = new WeakMap<Socket, Map<ServerResponse, DirectWrite>>();

/**
 * Calls back for what the service writes to the connection itself, past its response. That is what is written while nothing
 * of the response waits: a response that had to wait for its connection writes what it has kept while it still counts it.
 */
function watchDirectWrites(socket: Socket, response: ServerResponse, onWrite: DirectWrite): void {
  const known = directWrites.get(socket);
  const watchers = known ?? new Map<ServerResponse, DirectWrite>();
  watchers.set(response, onWrite);
  response.once("close", () => watchers.delete(response));
  if (known !== undefined) return;
  directWrites.set(socket, watchers);
  const write = socket.write.bind(socket) as (...given: readonly unknown[]) => boolean;
  socket.write = (...given: readonly unknown[]) => {
    for (const [of, onDirectWrite] of watchers)
      if (of.socket === socket && of.writableLength === 0) onDirectWrite(given);
    return write(...given);
  };
}

function keepBody(request: IncomingMessage, body: Uint8Array[]): void {
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding) => {
    // A copy: the service frees what it has read.
    if (chunk instanceof Uint8Array) body.push(Uint8Array.from(chunk));
    return push(chunk, encoding);
  };
}

subscribe("http.server.request.start", (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  watchResponse(request, response);
});

/** A request of `fetch`, as far as it is of interest. */
interface FetchRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** What a service in another process sends is looked at where `fetch` receives it. */
const received = new WeakMap<FetchRequest, Watched>();

subscribe("undici:request:headers", (message) => {
  const { request, response } = message as {
    readonly request: FetchRequest;
    readonly response: { readonly statusCode: number; readonly headers: readonly Uint8Array[] };
  };
  const headers = response.headers.map((bytes) => Buffer.from(bytes).toString("latin1"));
  const requestId = valueOf(headers, "x-request-id");
  if (!isOfService(requestId) || seenHere.delete(requestId)) return;
  const path = pathOf(request.path);
  const inspection = openInspection({
    method: request.method,
    path,
    shape: shapeOf(path, valueOf(request.headers, "anthropic-version") !== null),
    status: response.statusCode,
    contentType: valueOf(headers, "content-type") ?? "",
    requestBody: null,
  });
  received.set(request, inspection);
});

subscribe("undici:request:bodyChunkReceived", (message) => {
  const { request, chunk } = message as { readonly request: FetchRequest; readonly chunk: unknown };
  received.get(request)?.write(chunk);
});

subscribe("undici:request:trailers", (message) => {
  const { request } = message as { readonly request: FetchRequest };
  received.get(request)?.end();
});

function valueOf(headers: readonly string[], name: string): string | null {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (headers[index]?.toLowerCase() === name) return headers[index + 1] ?? null;
  }
  return null;
}
