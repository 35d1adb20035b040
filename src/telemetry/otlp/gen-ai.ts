import type { Histogram, Meter } from "@opentelemetry/api";
import { Failure } from "../../failure.ts";
import type { RequestFacts } from "../events.ts";
import { timePerTokenMs } from "../service-metrics.ts";

// The names of the semantic conventions for generative AI. They are not stable, and moved to a repository of their own:
// names are written out here, as no package has them for good.

/** What every span and metric of a generation has. */
export const chat = {
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": "tributary",
} as const;

/** What callers call the model; what they sent is a text of theirs. */
export const modelForCallers = "service-llm";

/** Counts a request by the conventions. */
export type GenAiMetrics = (facts: RequestFacts) => void;

/** Opens the histograms of a server, with the bounds that the conventions advise. */
export function openGenAiMetrics(meter: Meter): GenAiMetrics {
  const seconds = (name: string, description: string, bounds: number[]): Histogram =>
    meter.createHistogram(name, {
      unit: "s",
      description,
      advice: { explicitBucketBoundaries: bounds },
    });
  const duration = seconds(
    "gen_ai.server.request.duration",
    "Time of a request, to its last token.",
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  );
  const first = seconds(
    "gen_ai.server.time_to_first_token",
    "Time to the first token.",
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  );
  const perToken = seconds(
    "gen_ai.server.time_per_output_token",
    "Mean time of a token behind the first one, of answers that ended well.",
    [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5],
  );
  const tokens = meter.createHistogram("gen_ai.client.token.usage", {
    unit: "{token}",
    description: "Tokens of a generation on the deployment.",
    advice: { explicitBucketBoundaries: Array.from({ length: 14 }, (_, power) => 4 ** power) },
  });
  return ({ failureCode, generation, totalMs }) => {
    if (generation === null) return;
    const { firstOutputMs, format, inputTokens, outputTokens } = generation;
    const common = { ...chat, "gen_ai.request.model": modelForCallers, "tributary.format": format };
    const ended = failureCode === null ? common : { ...common, "error.type": failureCode };
    duration.record(totalMs / 1_000, ended);
    if (firstOutputMs !== null) first.record(firstOutputMs / 1_000, common);
    const each = timePerTokenMs(generation);
    if (each !== null) perToken.record(each / 1_000, common);
    tokens.record(inputTokens, { ...common, "gen_ai.token.type": "input" });
    tokens.record(outputTokens, { ...common, "gen_ai.token.type": "output" });
  };
}

/** One of few words: a failure code, or the class of an error. */
export function errorTypeOf(error: unknown): string {
  if (error instanceof Failure) return error.code;
  return error instanceof Error ? error.name : "_OTHER";
}
