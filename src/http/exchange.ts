import type { IncomingMessage, ServerResponse } from "node:http";
import { type ErrorShape, buildErrorAnswer } from "../formats/error-answer.ts";
import type { Failure, FailureCode } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import { areTiny, freePiece } from "./request-body.ts";
import type { Caller, RateState, RequestId } from "../ledger/ledger.ts";
import type { GenerationFacts } from "../telemetry/events.ts";

/** One request and its response, with the id that goes through headers, logs, ledger and error bodies. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: RequestId;
  readonly shape: ErrorShape;
  /** Path without query string, as sent. */
  readonly path: string;
  /** Aborted when the client is gone before the response has ended. */
  readonly gone: AbortSignal;
  /** Filled in on the way, for the log line at the end. */
  readonly record: ExchangeRecord;
}

/** What the log line of a request says beside its status. */
export interface ExchangeRecord {
  caller: Caller | null;
  failureCode: FailureCode | null;
  generation: GenerationFacts | null;
}

/** A whole answer: status and headers, names in lower case. */
export interface AnswerHead {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers with a whole JSON body. */
export function answerJson(exchange: Exchange, head: AnswerHead, body: unknown): void {
  answerBytes(
    exchange,
    {
      status: head.status,
      headers: { "content-type": "application/json; charset=utf-8", ...head.headers },
    },
    Buffer.from(JSON.stringify(body)),
  );
}

/** Answers with bytes that are ready. */
export function answerBytes(exchange: Exchange, head: AnswerHead, bytes: Uint8Array): void {
  const { response } = exchange;
  // A client that is gone reads nothing; writing would only raise an error.
  if (response.headersSent || response.destroyed) return;
  for (const [name, value] of Object.entries(head.headers ?? {})) response.setHeader(name, value);
  response.setHeader("content-length", bytes.byteLength);
  response.writeHead(head.status);
  response.end(bytes);
}

/** Answers with a failure, in the shape that this caller reads. */
export function answerFailure(exchange: Exchange, failure: Failure): void {
  exchange.record.failureCode = failure.code;
  const answer = buildErrorAnswer(failure, exchange.shape, exchange.requestId);
  // After a slow body the rest of it would be read as the next request.
  const closing = failure.code === "request_timeout" ? { connection: "close" } : {};
  const headers = {
    ...answer.headers,
    ...rateHeaders(failure.facts.rate ?? null, exchange.shape, Date.now()),
    ...closing,
  };
  answerJson(exchange, { status: answer.status, headers }, answer.body);
}

/** The headers that inform a client about its rate, in the spelling of its format. */
export function rateHeaders(
  rate: RateState | null,
  shape: ErrorShape,
  nowMs: number,
): Record<string, string> {
  if (rate === null) return {};
  const seconds = Math.max(Math.ceil(rate.resetMs / 1_000), 0);
  const headers = {
    "x-ratelimit-limit-requests": String(rate.limit),
    "x-ratelimit-remaining-requests": String(rate.remaining),
    "x-ratelimit-reset-requests": `${String(seconds)}s`,
  };
  if (shape === "openai") return headers;
  return {
    ...headers,
    "anthropic-ratelimit-requests-limit": String(rate.limit),
    "anthropic-ratelimit-requests-remaining": String(rate.remaining),
    "anthropic-ratelimit-requests-reset": new Date(nowMs + seconds * 1_000)
      .toISOString()
      .replace(/\.\d{3}Z$/, "Z"),
  };
}

/**
 * Lets a client that is still sending read an answer that came early: what it sends is thrown away for a while.
 * Closing at once would reset the connection, and the answer with it.
 */
export function lingerAfterEarlyAnswer({ record, request }: Exchange, timers: Timers): void {
  if (request.complete || request.destroyed) return;
  const known = record.caller !== null;
  // Who sends more than an account may would only go on, and keep the event loop busy with reading it.
  const bounded = record.failureCode === "too_many_concurrent";
  const bytesMax = bounded
    ? limits.lingerBoundedBytesMax
    : known
      ? limits.lingerBytesMax
      : limits.lingerWithoutKeyBytesMax;
  let bytes = 0;
  let pieces = 0;
  const timer = timers.set(
    () => request.destroy(),
    known && !bounded ? limits.lingerMs : limits.lingerWithoutKeyMs,
  );
  request.on("data", (piece: Buffer) => {
    bytes += piece.byteLength;
    pieces += 1;
    freePiece(piece);
    if (bytes > bytesMax || areTiny(pieces, bytes)) request.destroy();
  });
  const stop = (): void => timers.clear(timer);
  request.once("end", stop);
  request.once("close", stop);
  request.resume();
}
