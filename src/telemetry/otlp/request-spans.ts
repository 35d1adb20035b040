import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";
import type { RequestFacts } from "../events.ts";
import { probes } from "../probes.ts";
import type { AskedEnding, AskedTrace, RequestTrace, Traces } from "../request-trace.ts";
import { chat, errorTypeOf, modelForCallers } from "./gen-ai.ts";

/** Spans of requests. */
export interface RequestSpans {
  readonly traces: Traces;
  /** The trace of a request that is under way, for lines of the log about it. */
  traceOf(requestId: string): LineTrace | undefined;
  /** Ends the span of a request. */
  requestEnded(facts: RequestFacts): void;
}

/** What lines of the log have of a trace. */
export interface LineTrace {
  readonly traceId: string;
  readonly isSampled: boolean;
  readonly context: Context;
}

/** Where the deployment is, by the names of the conventions. */
export type DeploymentAddress = Readonly<
  Partial<Record<"server.address" | "server.port", string | number>>
>;

interface SpanParts {
  readonly propagates: boolean;
  readonly deployment: DeploymentAddress;
}

/** Spans of `tracer`. Each has what is known at its end; a text of a caller or a model is in none. */
export function openRequestSpans(tracer: Tracer, parts: SpanParts): RequestSpans {
  const open = new Map<string, OpenTrace>();
  return {
    traces: {
      begin({ path, requestId, traceparent }) {
        if (probes.has(path)) return null;
        const parent = parts.propagates ? parseTraceparent(traceparent) : null;
        const context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
        const span = tracer.startSpan("request", { kind: SpanKind.SERVER }, context);
        const begun = new OpenTrace(span, tracer, parts);
        open.set(requestId, begun);
        return begun;
      },
    },
    traceOf: (requestId) => open.get(requestId),
    requestEnded(facts) {
      const ended = open.get(facts.requestId);
      open.delete(facts.requestId);
      if (ended?.isSampled === true) endServerSpan(ended.span, facts);
    },
  };
}

class OpenTrace implements RequestTrace, LineTrace {
  readonly span: Span;
  readonly traceId: string;
  readonly isSampled: boolean;
  readonly #tracer: Tracer;
  readonly #parts: SpanParts;

  constructor(span: Span, tracer: Tracer, parts: SpanParts) {
    const { traceFlags, traceId } = span.spanContext();
    this.span = span;
    this.traceId = traceId;
    this.isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
    this.#tracer = tracer;
    this.#parts = parts;
  }

  /** Made where it is asked for: most traces are not sampled, and need none. */
  get context(): Context {
    return trace.setSpan(ROOT_CONTEXT, this.span);
  }

  follow(step: string, asked: Promise<unknown>): void {
    if (!this.isSampled) return;
    const span = this.#tracer.startSpan(step, {}, this.context);
    asked.then(
      () => span.end(),
      (error: unknown) => endFailed(span, errorTypeOf(error)),
    );
  }

  ask({
    model,
    outputTokensMax,
  }: {
    readonly model: string;
    readonly outputTokensMax: number;
  }): AskedTrace {
    if (!this.isSampled) return { traceparent: this.#traceparent(this.span), end: () => undefined };
    const attributes = {
      ...chat,
      "gen_ai.request.model": model,
      "gen_ai.request.max_tokens": outputTokensMax,
      "gen_ai.request.stream": true,
      ...this.#parts.deployment,
    };
    const options = { kind: SpanKind.CLIENT, attributes };
    const span = this.#tracer.startSpan(`chat ${model}`, options, this.context);
    return {
      traceparent: this.#traceparent(span),
      end: (answered) => endClientSpan(span, answered),
    };
  }

  /** Without the caller's `tracestate`, which is text of its own. */
  #traceparent(span: Span): string | null {
    if (!this.#parts.propagates) return null;
    const { spanId, traceFlags, traceId } = span.spanContext();
    return `00-${traceId}-${spanId}-0${String(traceFlags & 1)}`;
  }
}

function endServerSpan(span: Span, facts: RequestFacts): void {
  const { accountId, failureCode, generation, keyId, method, requestId, route, status } = facts;
  const attributes: Attributes = {
    "http.request.method": method,
    "http.response.status_code": status,
    "tributary.request.id": requestId,
  };
  if (route !== "") attributes["http.route"] = route;
  if (accountId !== null) attributes["tributary.account.id"] = accountId;
  if (keyId !== null) attributes["tributary.key.id"] = keyId;
  if (generation !== null) {
    const { format, outcome, streamed } = generation;
    Object.assign(attributes, chat, usageAttributes(generation), {
      "gen_ai.request.model": modelForCallers,
      "gen_ai.request.max_tokens": generation.allowance,
      "tributary.format": format,
      "tributary.streamed": streamed,
      "tributary.outcome": outcome,
      // Exact: limits and prices keep every charge below 2^53.
      "tributary.charged_nanos": Number(generation.chargedNanos),
    });
  }
  span.updateName(route === "" ? method : `${method} ${route}`);
  span.setAttributes(attributes);
  if (failureCode === null) span.end();
  else endFailed(span, failureCode, status >= 500 || status === 200);
}

function endClientSpan(span: Span, answered: AskedEnding): void {
  const { errorType, finishReason, firstOutputMs, usage } = answered;
  if (usage !== null) {
    span.setAttributes(usageAttributes(usage));
    span.setAttribute("gen_ai.usage.reasoning.output_tokens", usage.reasoningTokens);
  }
  if (finishReason !== null) span.setAttribute("gen_ai.response.finish_reasons", [finishReason]);
  if (firstOutputMs !== null)
    span.setAttribute("gen_ai.response.time_to_first_chunk", firstOutputMs / 1_000);
  if (errorType === null) span.end();
  else endFailed(span, errorType);
}

function usageAttributes(usage: {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
}): Attributes {
  return {
    "gen_ai.usage.input_tokens": usage.inputTokens,
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
  };
}

/** A request that a caller got wrong is no error of the server's span; its type is there all the same. */
function endFailed(span: Span, errorType: string, isError = true): void {
  span.setAttribute("error.type", errorType);
  if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

/** W3C trace context, version 00 or a later one; anything else begins a trace of our own. */
function parseTraceparent(header: string | readonly string[] | undefined): SpanContext | null {
  if (typeof header !== "string") return null;
  const [, version, traceId = "", spanId = "", flags = "", more] =
    /^((?!ff)[\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/.exec(header.trim()) ?? [];
  if (version === "00" && more !== undefined) return null;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(context) ? context : null;
}
