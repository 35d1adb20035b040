import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorShape } from "../formats/error-answer.ts";
import type { FailureCode } from "../failure.ts";
import type { Caller } from "../ledger/ledger.ts";
import type { RequestId } from "../ledger/scalars.ts";
import type { GenerationFacts } from "../telemetry/events.ts";
import type { RequestTrace, Traces } from "../telemetry/request-trace.ts";

/** One request and its response, with the id that goes through headers, logs, ledger and error bodies. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: RequestId;
  readonly shape: ErrorShape;
  /** The address that it comes from. */
  readonly client: string;
  /** Path without query string, as sent. */
  readonly path: string;
  /** Aborted when the client is gone before the response has ended. */
  readonly gone: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** null: there are no traces, or none of this path. */
  readonly trace: RequestTrace | null;
  /** Filled in on the way, for the log line at the end. */
  readonly record: ExchangeRecord;
}

/** What the log line of a request says beside its status. */
export interface ExchangeRecord {
  caller: Caller | null;
  /** Whose key it was that was refused although it is a right one. */
  refused: Pick<Caller, "accountId" | "keyId"> | null;
  failureCode: FailureCode | null;
  generation: GenerationFacts | null;
}

/** Opens the exchange of a request that has just come, and gives it its id. */
export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  parts: {
    readonly client: string;
    readonly gone: AbortSignal;
    readonly newId: (prefix: string, atMs?: number) => string;
    readonly now: () => number;
    readonly traces?: Traces | null | undefined;
  },
): Exchange {
  const path = pathOf(request.url ?? "/");
  const shape =
    path.startsWith("/v1/messages") || request.headers["anthropic-version"] !== undefined
      ? "messages"
      : "openai";
  const requestId = parts.newId("req_", parts.now()) as RequestId;
  response.setHeader("x-request-id", requestId);
  if (shape === "messages") response.setHeader("request-id", requestId);
  return {
    request,
    response,
    requestId,
    shape,
    client: parts.client,
    path,
    gone: parts.gone,
    now: parts.now,
    trace:
      parts.traces?.begin({ requestId, path, traceparent: request.headers["traceparent"] }) ?? null,
    record: { caller: null, refused: null, failureCode: null, generation: null },
  };
}

/** The path of a request's target, which may be a whole address (RFC 9112, section 3.2.2). */
function pathOf(target: string): string {
  const path = target.split("?", 1)[0] ?? "/";
  if (!/^https?:\/\//iu.test(path)) return path;
  const slash = path.indexOf("/", path.indexOf("//") + 2);
  return slash === -1 ? "/" : path.slice(slash);
}
