import { buildErrorAnswer, type ErrorShape } from "../formats/error-answer.ts";
import type { Failure } from "../failure.ts";
import type { RateState } from "../ledger/ledger.ts";
import type { Exchange } from "./exchange.ts";

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
  // Without this, the rest of a slow body would be read as the next request.
  const closing = failure.code === "request_timeout" ? { connection: "close" } : {};
  const headers = {
    ...answer.headers,
    ...rateHeaders(failure.facts.rate ?? null, exchange.shape, exchange.now()),
    ...closing,
  };
  answerJson(exchange, { status: answer.status, headers }, answer.body);
}

/** The headers that inform a client about its rate, under the names of its format. */
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
