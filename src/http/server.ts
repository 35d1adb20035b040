import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Failure, failureFromUnknown } from "../failure.ts";
import { limits } from "../limits.ts";
import {
  type ListenAddress,
  listenAt,
  onConnection,
  openHttpServer,
  portOf,
  urlOf,
} from "../network/http-server.ts";
import { drain, type DrainOrder } from "./drain.ts";
import { answerFailure } from "./answer.ts";
import { type Exchange, openExchange } from "./exchange.ts";
import { type Lingering, openLingering } from "./linger.ts";
import { openReadTurns } from "./read-turns.ts";
import { openReaderWatch } from "./reader-watch.ts";
import { findRoute } from "./routes.ts";
import { boundConnections } from "./connection-bound.ts";
import { boundSendBuffers } from "./send-buffer.ts";
import type { Service } from "./service.ts";

/** A server that listens. */
export interface ListeningServer {
  readonly host: string;
  readonly port: number;
  /** `http://` or `https://` with both, or `unix:` and a path. */
  readonly url: string;
  /** Refuses what is new, lets what runs finish for the time given, then fails and settles the rest; once. */
  drain(order: DrainOrder): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Listens; rejects when the address cannot be had. */
export async function listen(service: Service, address: ListenAddress): Promise<ListeningServer> {
  const newest: NewestExchanges = new WeakMap();
  const exchanges = new Set<Exchange>();
  let drained: Promise<void> | null = null;
  const lingering = openLingering(service.timers);
  const turns = openReadTurns(service.monotonicMs);
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    turns.follow(request, response);
    // A request that comes once the listener is closed is the last of its connection: a proxy then turns to another replica.
    if (!server.listening) response.shouldKeepAlive = false;
    void serveExchange(request, response, { service, newest, exchanges, lingering });
  };
  const opened = await openHttpServer(address, handle, {
    options: serverOptions,
    timers: service.timers,
    telemetry: service.telemetry,
  });
  const { server } = opened;
  // Without this listener, Node answers `100 continue` before the key has been checked.
  server.on("checkContinue", handle);
  // Without this listener, Node refuses an expectation that it does not know; the request can be served all the same.
  server.on("checkExpectation", handle);
  onConnection(server, (socket) => turns.share(socket));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const exchange = newest.get(socket);
    if (exchange === undefined) refuseMalformed(error, socket);
    else endMalformed(exchange, error, socket);
  });
  await listenAt(server, address).catch((error: unknown) => {
    opened[Symbol.dispose]();
    throw error;
  });
  const { sendBufferBytes } = service.settings;
  if (sendBufferBytes !== null && !boundSendBuffers(server, sendBufferBytes))
    service.telemetry.lifecycle("send buffers not bounded", {});
  boundConnections(server, service.settings.generationsMax, {
    monotonicMs: service.monotonicMs,
    onFull: (connections) => service.telemetry.lifecycle("connections full", { connections }),
  });
  const { host } = address;
  const port = portOf(server);
  return {
    host,
    port,
    url: urlOf({ ...address, port }),
    drain: (order) => (drained ??= drain(order, { server, service, exchanges })),
    close: () =>
      new Promise((resolve) => {
        opened[Symbol.dispose]();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const serverOptions = {
  headersTimeout: limits.requestReceiveMs,
  // `readRequestBody` limits the time of bodies, so that a slow one gets an answer in the caller's format.
  requestTimeout: 0,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: limits.keepAliveMs,
  maxHeaderSize: limits.headerBytesMax,
  noDelay: true,
};

/** The last request of each connection, as long as its answer is not over. */
type NewestExchanges = WeakMap<Socket, Exchange>;

async function serveExchange(
  request: IncomingMessage,
  response: ServerResponse,
  {
    service,
    newest,
    exchanges,
    lingering,
  }: {
    readonly service: Service;
    readonly newest: NewestExchanges;
    readonly exchanges: Set<Exchange>;
    readonly lingering: Lingering;
  },
): Promise<void> {
  const { socket } = request;
  const startedAtMs = service.monotonicMs();
  const gone = new AbortController();
  const closed = new Promise<void>((resolve) => response.once("close", resolve));
  response.once("close", () => {
    if (!response.writableFinished) gone.abort();
  });
  // A socket that breaks while an answer is written raises here; "close" follows and is what counts.
  response.on("error", () => undefined);
  const { newId, now } = service;
  const { traces } = service.telemetry;
  const client = service.clientOf(request);
  const parts = { client, gone: gone.signal, newId, now, traces };
  const exchange = openExchange(request, response, parts);
  newest.set(socket, exchange);
  exchanges.add(exchange);
  const reader = openReaderWatch(response, socket, service.timers);
  reader.allow(limits.readerStallMs);
  let pattern = "";
  try {
    ensureOneMeaning(request);
    allowOrigin(exchange, service.settings.corsOrigins);
    if (!answerPreflight(exchange)) {
      const route = findRoute(
        request.method ?? "GET",
        exchange.path,
        request.headers.upgrade !== undefined,
      );
      pattern = route.pattern;
      await route.handler(exchange, service);
    }
  } catch (error) {
    fail(exchange, error, service);
  }
  reader.allow(limits.readerStallAfterEndMs);
  lingering.begin(exchange);
  await closed;
  exchanges.delete(exchange);
  if (newest.get(socket) === exchange) newest.delete(socket);
  const { caller, failureCode, generation, refused } = exchange.record;
  service.telemetry.requestEnded({
    requestId: exchange.requestId,
    method: request.method ?? "",
    route: pattern,
    path: pattern === "" ? exchange.path.slice(0, limits.loggedPathCharactersMax) : null,
    // nginx's number for a client that left before its answer began.
    status: response.headersSent ? response.statusCode : 499,
    failureCode,
    client,
    accountId: (caller ?? refused)?.accountId ?? null,
    keyId: (caller ?? refused)?.keyId ?? null,
    totalMs: Math.round(service.monotonicMs() - startedAtMs),
    generation,
  });
}

/** Refuses a request that a proxy in front may have read differently than Node did. */
function ensureOneMeaning({ headers, rawHeaders }: IncomingMessage): void {
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    throw new Failure(
      "unsupported_media_type",
      "The only transfer-encoding taken is `chunked`: send the body without another, or with `content-length`.",
    );
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts += 1;
  if (hosts > 1)
    throw new Failure("invalid_request", "The request has more than one `host` header. Send one.");
}

function fail(exchange: Exchange, error: unknown, service: Service): void {
  const failure = failureFromUnknown(error);
  exchange.record.failureCode = failure.code;
  if (failure.kind.status >= 500)
    service.telemetry.failed({
      requestId: exchange.requestId,
      code: failure.code,
      cause: failure.facts.cause ?? failure,
    });
  // `endMalformed` has answered while the handler was waiting; that answer is on its way.
  if (exchange.response.writableEnded) return;
  // An AnswerWriter ends an answer that had begun; a Failure comes here only when the writer itself broke.
  if (exchange.response.headersSent) exchange.response.destroy();
  else answerFailure(exchange, failure);
}

function allowOrigin(exchange: Exchange, origins: readonly string[]): void {
  const { origin } = exchange.request.headers;
  if (origin === undefined || !(origins.includes(origin) || origins.includes("*"))) return;
  exchange.response.setHeader("access-control-allow-origin", origin);
  exchange.response.setHeader("vary", "origin");
  exchange.response.setHeader(
    "access-control-expose-headers",
    "x-request-id, request-id, retry-after, x-should-retry, x-tributary-output-allowance, " +
      "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests",
  );
}

/** Answers the preflight request of a browser; false where it is none, or its origin is not allowed. */
function answerPreflight(exchange: Exchange): boolean {
  const { request, response } = exchange;
  const asked = request.headers["access-control-request-method"];
  if (request.method !== "OPTIONS" || asked === undefined) return false;
  if (!response.hasHeader("access-control-allow-origin")) return false;
  response.setHeader("access-control-allow-methods", "GET, POST");
  response.setHeader(
    "access-control-allow-headers",
    request.headers["access-control-request-headers"] ?? "authorization, content-type",
  );
  response.setHeader("access-control-max-age", "600");
  response.writeHead(204).end();
  return true;
}

/** Answers bytes that never became a request: without a path there is no error shape to choose, so there is no body. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const status =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? "408 Request Timeout"
      : error.code === "HPE_HEADER_OVERFLOW"
        ? "431 Request Header Fields Too Large"
        : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

/** Ends an exchange behind or inside whose request came bytes that are no HTTP: its answer is not mixed with another. */
function endMalformed(exchange: Exchange, error: NodeJS.ErrnoException, socket: Socket): void {
  const { request, response } = exchange;
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  response.shouldKeepAlive = false;
  if (!request.complete && !response.headersSent)
    answerFailure(
      exchange,
      new Failure(
        "invalid_request",
        error.code === "HPE_INVALID_EOF_STATE"
          ? "The body ended before its headers say that it does. Send it whole."
          : "The body is framed wrongly: a chunk does not have the length that it says. Send it with `content-length`.",
        { cause: error },
      ),
    );
  // The headers that were sent may say `keep-alive`, but the parser reads nothing more of this connection.
  if (response.writableFinished) socket.destroySoon();
  else response.once("finish", () => socket.destroySoon());
}
