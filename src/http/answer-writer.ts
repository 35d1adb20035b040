import { openGenerationCollector } from "../conversation/collect-generation.ts";
import { Failure } from "../failure.ts";
import type { AnswerContext, StreamEncoder, WireFormat } from "../formats/wire-format.ts";
import type { AnswerEnding, AnswerSink } from "../generation/serve-generation.ts";
import { limits } from "../limits.ts";
import { answerFailure, answerJson } from "./answer.ts";
import { openEventStream } from "./event-stream.ts";
import type { Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

/** An answer on its way out, streamed or whole: both are fed by the same events. */
export interface AnswerWriter {
  /** Called again, with another context, when the allowance is reduced before anything was written. */
  admitted(format: WireFormat<unknown>, context: AnswerContext<unknown>): void;
  accepted(): void;
  events: AnswerSink["events"];
  end(ending: AnswerEnding): void;
}

/** Opens an answer that is sent as it is made. */
export function openStreamedAnswer(
  exchange: Exchange,
  service: Service,
  source: { pause(): void; resume(): void },
): AnswerWriter {
  let encoder: StreamEncoder | null = null;
  let openTimer: unknown;
  let opened = false;
  const stream = openEventStream(exchange.response, {
    source,
    keepaliveMs: service.settings.keepaliveMs,
    keepalive: () => encoder?.keepalive() ?? "",
    timers: service.timers,
    monotonicMs: service.monotonicMs,
  });

  function open(): StreamEncoder {
    if (encoder === null) throw new Error("an answer was opened before it was admitted");
    service.timers.clear(openTimer);
    if (!opened) {
      opened = true;
      stream.open(encoder.open());
    }
    return encoder;
  }

  return {
    admitted(format, context) {
      encoder = format.openEncoder(context);
      openTimer ??= service.timers.set(open, limits.headersAfterMs);
    },
    accepted: () => void open(),
    events(batch) {
      stream.write(open().encode(batch));
    },
    end(ending) {
      service.timers.clear(openTimer);
      if (ending.type === "cancelled") return stream.stop();
      if (ending.type === "finished") return stream.end(open().finish(ending.finish));
      if (opened) return stream.end(open().fail(ending.failure));
      answerFailure(exchange, ending.failure);
    },
  };
}

/** Opens an answer that is sent when it is whole. */
export function openWholeAnswer(exchange: Exchange): AnswerWriter {
  const collector = openGenerationCollector();
  let build: ((ending: AnswerEnding & { readonly type: "finished" }) => unknown) | null = null;
  return {
    admitted(format, context) {
      build = (ending) => format.buildResponse(collector.finish(ending.finish), context);
    },
    accepted: () => undefined,
    events(batch) {
      collector.add(batch);
      if (collector.characters > limits.answerCharactersMax)
        throw new Failure(
          "deployment_failed",
          "The answer is longer than the service holds at once. Ask for it with `stream: true`.",
        );
    },
    end(ending) {
      if (ending.type === "finished") answerJson(exchange, { status: 200 }, build?.(ending));
      else if (ending.type === "failed") answerFailure(exchange, ending.failure);
    },
  };
}
