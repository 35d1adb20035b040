import type { Attributes, HrTime } from "@opentelemetry/api";
import { AggregationTemporality, DataPointType, type MetricData } from "@opentelemetry/sdk-metrics";
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

/** From when to when something was counted. */
export interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

/** The metrics of the conventions. */
export interface GenAiMetrics {
  /** Counts a request. */
  count(facts: RequestFacts): void;
  /** As they are sent. */
  read(times: Times): readonly MetricData[];
}

// Counted here and not by the packages' instruments, which sort an observation's attributes and make text of them: 6 µs a request.

interface Naming {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Those that the conventions advise. */
  readonly boundaries: readonly number[];
}

const namings = {
  duration: {
    name: "gen_ai.server.request.duration",
    unit: "s",
    description: "Time of a request, to its last token.",
    boundaries: [
      0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ],
  },
  first: {
    name: "gen_ai.server.time_to_first_token",
    unit: "s",
    description: "Time to the first token.",
    boundaries: [
      0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
    ],
  },
  perToken: {
    name: "gen_ai.server.time_per_output_token",
    unit: "s",
    description: "Mean time of a token behind the first one, of answers that ended well.",
    boundaries: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5],
  },
  tokens: {
    name: "gen_ai.client.token.usage",
    unit: "{token}",
    description: "Tokens of a generation on the deployment.",
    boundaries: Array.from({ length: 14 }, (_, power) => 4 ** power),
  },
} as const satisfies Record<string, Naming>;

/** Opens the histograms of a server. */
export function openGenAiMetrics(): GenAiMetrics {
  const duration = new Histogram(namings.duration, "error.type");
  const first = new Histogram(namings.first);
  const perToken = new Histogram(namings.perToken);
  const tokens = new Histogram(namings.tokens, "gen_ai.token.type");
  return {
    count({ failureCode, generation, totalMs }) {
      if (generation === null) return;
      const { firstOutputMs, format, inputTokens, outputTokens } = generation;
      duration.record(totalMs / 1_000, format, failureCode);
      if (firstOutputMs !== null) first.record(firstOutputMs / 1_000, format);
      const each = timePerTokenMs(generation);
      if (each !== null) perToken.record(each / 1_000, format);
      tokens.record(inputTokens, format, "input");
      tokens.record(outputTokens, format, "output");
    },
    read: (times) => [duration, first, perToken, tokens].map((one) => one.read(times)),
  };
}

interface Series {
  readonly attributes: Attributes;
  readonly counts: number[];
  sum: number;
}

/** By format, and by what `more` names where a request has it. */
class Histogram {
  readonly #naming: Naming;
  readonly #more: string;
  readonly #series = new Map<string, Series>();

  constructor(naming: Naming, more = "") {
    this.#naming = naming;
    this.#more = more;
  }

  record(value: number, format: string, more: string | null = null): void {
    const key = more === null ? format : `${format} ${more}`;
    const series = this.#series.get(key) ?? this.#begin(key, format, more);
    const { boundaries } = this.#naming;
    let bucket = 0;
    while (bucket < boundaries.length && value > (boundaries[bucket] ?? 0)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += value;
  }

  #begin(key: string, format: string, more: string | null): Series {
    const common = { ...chat, "gen_ai.request.model": modelForCallers, "tributary.format": format };
    const series = {
      attributes: more === null ? common : { ...common, [this.#more]: more },
      counts: this.#naming.boundaries.map(() => 0).concat(0),
      sum: 0,
    };
    this.#series.set(key, series);
    return series;
  }

  read(times: Times): MetricData {
    const { boundaries, description, name, unit } = this.#naming;
    return {
      descriptor: { name, description, unit, valueType: 1 },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: [...this.#series.values()].map(({ attributes, counts, sum }) => ({
        ...times,
        attributes,
        value: {
          buckets: { boundaries: [...boundaries], counts: [...counts] },
          sum,
          count: counts.reduce((total, count) => total + count, 0),
        },
      })),
    };
  }
}

/** One of few words: a failure code, or the class of an error. */
export function errorTypeOf(error: unknown): string {
  if (error instanceof Failure) return error.code;
  return error instanceof Error ? error.name : "_OTHER";
}
