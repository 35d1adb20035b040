import { inputBound, inputTokensEstimate } from "../admission/input-bound.ts";
import { Failure, failureFromUnknown } from "../failure.ts";
import { wireFormats } from "../formats/formats.ts";
import type { AnswerContext, WireFormat } from "../formats/wire-format.ts";
import type { ServedGeneration } from "../generation/generation-control.ts";
import {
  type AnswerEnding,
  type AnswerSink,
  type GenerationOrder,
  serveGeneration,
} from "../generation/serve-generation.ts";
import type { Caller } from "../ledger/ledger.ts";
import { limits } from "../limits.ts";
import { openReasoningSeal, type ReasoningSeal } from "../seal/reasoning-seal.ts";
import { type AnswerWriter, openStreamedAnswer, openWholeAnswer } from "./answer-writer.ts";
import { type Authorized, authorize, shuttingDown, withTicketBack } from "./authorization.ts";
import type { Exchange } from "./exchange.ts";
import { labelOfHeader } from "./label.ts";
import { inputTooLarge, type PreparedRequest, prepareRequest } from "./prepare-request.ts";
import { readRequestBody } from "./request-body.ts";
import type { GenerationRoute, Service, ServiceState } from "./service.ts";

/** Bytes above which a body exceeds the input bound, whatever it holds. */
const largestBodyWithinBound = limits.inputBoundMax - inputBound(0, 0, 0);

/** Serves a generation in any format; resolves when it has ended and is settled. Throws a Failure before admission. */
export async function handleGeneration(
  exchange: Exchange,
  route: GenerationRoute,
  service: Service,
): Promise<void> {
  const { preferredKey } = route;
  const authorized = await authorize(exchange, { type: "generation", preferredKey }, service);
  countForDrain(exchange, service);
  const order = await withTicketBack(authorized.caller, service, () =>
    readOrder(exchange, { route, authorized, service }),
  );
  if (exchange.gone.aborted) return;
  if (service.state.closing) throw shuttingDown();
  takePlace(exchange, service);
  await answer(exchange, order, { service, onDecided: () => authorized.entry.release() });
}

/** Counts a request until its client has the whole answer or is gone: a drain must not cut off a slow reader. */
function countForDrain({ response }: Exchange, { state }: Service): void {
  if (response.closed) return;
  state.requests += 1;
  response.once("close", () => {
    state.requests -= 1;
  });
}

/** Takes one of the `generationsMax` places, until the client has the whole answer or is gone. */
function takePlace({ response }: Exchange, { settings, state }: Service): void {
  if (state.places >= settings.generationsMax)
    throw new Failure(
      "overloaded",
      "The service is running as many generations as it may. Try again in a moment.",
      { retryAfterSeconds: 2 },
    );
  state.places += 1;
  response.once("close", () => {
    state.places -= 1;
  });
}

/** A request that is ready to be admitted, with what its answer needs. */
interface PreparedOrder {
  readonly order: GenerationOrder;
  readonly format: WireFormat<unknown>;
  readonly echo: unknown;
  readonly seal: ReasoningSeal;
}

async function readOrder(
  exchange: Exchange,
  parts: {
    readonly route: GenerationRoute;
    readonly authorized: Authorized;
    readonly service: Service;
  },
): Promise<PreparedOrder> {
  const { service } = parts;
  const { caller, entry } = parts.authorized;
  const format = wireFormats[parts.route.format];
  const seal = openReasoningSeal(service.sealKeys, caller.accountId);
  const { byteLength: bodyBytes, bytes } = await readRequestBody(
    exchange.request,
    exchange.response,
    { entry, keptBytesMax: largestBodyWithinBound, timers: service.timers },
  );
  // A body of so many bytes is above the input bound whatever it holds, so it is refused unparsed.
  if (bytes === null) throw inputTooLarge(inputBound(bodyBytes, 0, 0));
  const { gone } = exchange;
  const prepared = await prepareWhenReady(bytes, { caller, service, format, seal, gone });
  return {
    order: {
      requestId: exchange.requestId,
      trace: exchange.trace,
      caller,
      format: format.name,
      streamed: prepared.stream,
      label: labelOfHeader(exchange.request.headers["x-tributary-label"]) ?? prepared.label,
      prompt: prepared.prompt,
      inputBound: prepared.inputBound,
      inputTokensEstimate: inputTokensEstimate(bodyBytes, prepared.prompt.bytes.byteLength),
      outputTokensRequested: prepared.outputTokensRequested,
    },
    format,
    echo: prepared.echo,
    seal,
  };
}

type PreparedWithPrompt = PreparedRequest & {
  readonly prompt: NonNullable<PreparedRequest["prompt"]>;
};

/**
 * Prepares a request, and waits for a deployment that is not ready. The request is checked before that wait, so that a
 * bad one is refused at once, and prepared again after it, with the prompt settings that the deployment then has.
 */
async function prepareWhenReady(
  bytes: Uint8Array<ArrayBuffer>,
  parts: {
    readonly caller: Caller;
    readonly service: Service;
    readonly format: WireFormat<unknown>;
    readonly seal: ReasoningSeal;
    readonly gone: AbortSignal;
  },
): Promise<PreparedWithPrompt> {
  const { deployment, settings, workers } = parts.service;
  const prepare = async (body: Uint8Array<ArrayBuffer>, ready: boolean): Promise<PreparedRequest> =>
    body.byteLength <= limits.bodyInlineBytesMax
      ? prepareRequest(body, {
          format: parts.format,
          reasoning: parts.seal,
          buildPrompt: ready
            ? (conversation, options) => deployment.prepare(conversation, options)
            : null,
          labelFields: settings.labelFrom,
        })
      : await workers.prepare(
          {
            type: "prepare",
            format: parts.format.name,
            bytes: body,
            accountId: parts.caller.accountId,
            promptSettings: ready ? deployment.promptSettings() : null,
            labelFields: settings.labelFrom,
          },
          parts.gone,
        );
  if (!deployment.describe().ready) {
    await prepare(bytes.slice(), false);
    await deployment.whenReady(parts.gone);
  }
  const prepared = await prepare(bytes, true);
  if (prepared.prompt === null) throw new Error("a prepared request has no prompt");
  return { ...prepared, prompt: prepared.prompt };
}

/** Runs the generation and writes its answer; resolves at its end. */
async function answer(
  exchange: Exchange,
  prepared: PreparedOrder,
  parts: { readonly service: Service; readonly onDecided: () => void },
): Promise<void> {
  const { onDecided, service } = parts;
  await new Promise<void>((resolve) => {
    // Assigned below; the sink is not called before serveGeneration has returned.
    let running: ServedGeneration | null = null;
    const writer = prepared.order.streamed
      ? openStreamedAnswer(exchange, service, {
          pause: () => running?.pause(),
          resume: () => running?.resume(),
        })
      : openWholeAnswer(exchange);
    const grant = (outputTokensMax: number): void => {
      exchange.response.setHeader("x-tributary-output-allowance", String(outputTokensMax));
      const context = answerContext(exchange, prepared, { outputTokensMax, service });
      writer.admitted(prepared.format, context);
    };
    const sink: AnswerSink = {
      admitted({ allowance }) {
        onDecided();
        grant(allowance);
      },
      reduced(allowance) {
        if (exchange.response.headersSent) return false;
        grant(allowance);
        return true;
      },
      accepted: () => writer.accepted(),
      events: (batch) => writer.events(batch),
      end(ending, facts) {
        exchange.record.generation = facts;
        if (ending.type === "failed") exchange.record.failureCode = ending.failure.code;
        if (ending.type === "failed") report(exchange, ending.failure, service);
        endAnswer(exchange, writer, { ending, service });
        if (running !== null) leaveRunning(running, service.state, facts?.outputTokens ?? 0);
        resolve();
      },
    };
    running = serveGeneration(prepared.order, sink, service);
    service.state.generations.add(running);
    const leave = (): void => running?.cancel();
    if (exchange.gone.aborted) leave();
    else exchange.gone.addEventListener("abort", leave, { once: true });
  });
}

/** What was counted while it ran stays counted where it is settled for nothing: it was made all the same. */
function leaveRunning(running: ServedGeneration, state: ServiceState, settledTokens: number): void {
  state.generations.delete(running);
  state.outputTokens += Math.max(settledTokens, running.progress.outputTokens);
}

/** An answer that cannot be written is failed in its own format; only when that is impossible it breaks off. */
function endAnswer(
  exchange: Exchange,
  writer: AnswerWriter,
  { ending, service }: { readonly ending: AnswerEnding; readonly service: Service },
): void {
  try {
    writer.end(ending);
  } catch (error) {
    const failure = failureFromUnknown(error);
    exchange.record.failureCode = failure.code;
    report(exchange, failure, service);
    try {
      writer.end({ type: "failed", failure });
    } catch {
      exchange.response.destroy();
    }
  }
}

function report(exchange: Exchange, failure: Failure, service: Service): void {
  if (failure.kind.status < 500) return;
  service.telemetry.failed({
    requestId: exchange.requestId,
    code: failure.code,
    cause: failure.facts.cause ?? failure,
  });
}

function answerContext(
  exchange: Exchange,
  prepared: PreparedOrder,
  parts: { readonly outputTokensMax: number; readonly service: Service },
): AnswerContext<unknown> {
  return {
    requestId: exchange.requestId,
    createdAtMs: parts.service.now(),
    echo: prepared.echo,
    inputTokensEstimate: prepared.order.inputTokensEstimate,
    outputTokensMax: parts.outputTokensMax,
    newId: parts.service.newId,
    now: parts.service.now,
    reasoning: prepared.seal,
  };
}
