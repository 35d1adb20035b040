import type {
  Deployment,
  GenerationSink,
  Prompt,
  RunningGeneration,
} from "../deployment/deployment.ts";
import type { AskedEnding, AskedTrace, RequestTrace } from "../telemetry/request-trace.ts";

/** How an answer ended, as far as a trace says it. */
type AnswerEnding =
  | { readonly type: "finished"; readonly finish: { readonly reason: string } }
  | { readonly type: "failed"; readonly failure: { readonly code: string } }
  | { readonly type: "cancelled" };

/** The questions of one generation to its deployment, each in a span of its own where traces are on. */
export interface Asking {
  start(outputTokensMax: number, sink: GenerationSink): RunningGeneration;
  /** The last question is over. */
  end(answer: AnswerEnding, facts: Pick<AskedEnding, "firstOutputMs" | "usage">): void;
}

/** Opens it for a prompt: with the bound that was admitted, input usage beyond which is not believed. */
export function openAsking(
  order: {
    readonly prompt: Prompt;
    readonly inputBound: number;
    readonly trace?: RequestTrace | null;
  },
  deployment: Deployment,
): Asking {
  const { inputBound, prompt, trace = null } = order;
  let asked: AskedTrace | null = null;
  return {
    start(outputTokensMax, sink) {
      if (trace !== null)
        asked = trace.ask({ model: deployment.describe().model, outputTokensMax });
      const traceparent = asked?.traceparent ?? null;
      const bounded = { ...prompt, inputTokensMax: inputBound };
      const traced = traceparent === null ? bounded : { ...bounded, traceparent };
      return deployment.start(traced, outputTokensMax, sink);
    },
    end(answer, facts) {
      asked?.end({
        ...facts,
        errorType: errorTypeOf(answer),
        finishReason: answer.type === "finished" ? answer.finish.reason : null,
      });
    },
  };
}

function errorTypeOf(answer: AnswerEnding): string | null {
  if (answer.type === "failed") return answer.failure.code;
  return answer.type === "cancelled" ? "cancelled" : null;
}
