import type { Attributes, HrTime } from "@opentelemetry/api";
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import { emptyResource } from "@opentelemetry/resources";
import type { MetricsSnapshot } from "../whole-metrics.ts";
import type { GenAiMetrics, Times } from "./gen-ai.ts";

type Exposed = MetricsSnapshot[number];
/** Of a histogram each sample says which part of it it is. */
type Sample = Exposed["values"][number] & { readonly metricName?: string };

/** The metrics of `/metrics`, under their names there, and those of the conventions: read when they are sent. */
export function produceExposedMetrics(
  snapshot: () => Promise<MetricsSnapshot>,
  parts: {
    readonly version: string;
    readonly now: () => number;
    readonly genAi: GenAiMetrics;
  },
): MetricProducer {
  const startTime = hrTimeOf(parts.now());
  return {
    async collect() {
      const times = { startTime, endTime: hrTimeOf(parts.now()) };
      const exposed = (await snapshot()).flatMap((metric) => metricOf(metric, times));
      const metrics = [...exposed, ...parts.genAi.read(times)];
      const scopeMetrics = [{ scope: { name: "tributary", version: parts.version }, metrics }];
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
    },
  };
}

function metricOf(metric: Exposed, times: Times): readonly MetricData[] {
  const common = {
    descriptor: { name: metric.name, description: metric.help, unit: "", valueType: 1 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const dataPoints = metric.values.map(({ labels, value }) => ({
    ...times,
    attributes: attributesOf(labels),
    value,
  }));
  // The library's types have numbers for kinds, and its values are their names.
  switch (String(metric.type)) {
    case "counter":
      return [{ ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }];
    case "gauge":
      return [{ ...common, dataPointType: DataPointType.GAUGE, dataPoints }];
    case "histogram":
      return [
        {
          ...common,
          dataPointType: DataPointType.HISTOGRAM,
          dataPoints: histogramsOf(metric.values).map((point) => ({ ...times, ...point })),
        },
      ];
    default:
      return [];
  }
}

/** Buckets that each hold the ones before become buckets of their own. */
function histogramsOf(
  values: readonly Sample[],
): readonly { readonly attributes: Attributes; readonly value: Histogram }[] {
  const series = Map.groupBy(values, ({ labels }) => {
    const { le: _bound, ...others } = labels as Record<string, unknown>;
    return JSON.stringify(others);
  });
  return [...series].map(([attributes, samples]) => {
    const buckets = samples.filter(({ labels }) => "le" in labels);
    const totals = buckets.map(({ value }) => value);
    const of = (end: string): number =>
      samples.find(({ metricName }) => metricName?.endsWith(end) === true)?.value ?? 0;
    return {
      attributes: JSON.parse(attributes) as Attributes,
      value: {
        buckets: {
          boundaries: buckets
            .map(({ labels }) => Number((labels as { readonly le?: unknown }).le))
            .filter((bound) => Number.isFinite(bound)),
          counts: totals.map((total, index) => total - (totals[index - 1] ?? 0)),
        },
        sum: of("_sum"),
        count: of("_count"),
      },
    };
  });
}

function attributesOf(labels: Sample["labels"]): Attributes {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}

function hrTimeOf(ms: number): HrTime {
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1e6];
}
