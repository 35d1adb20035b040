import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { RequestFacts } from "./events.ts";
import { combineLabels, type knownLabels } from "./known-labels.ts";

/** The metrics that business events move. */
export type ServiceMetrics = ReturnType<typeof addServiceMetrics>;

interface Naming {
  readonly name: string;
  readonly help: string;
}

/** Adds them to a registry, with all their known labels at 0. */
export function addServiceMetrics(registry: Registry) {
  const registers = [registry];
  /** A counter whose labels all have known values. */
  function counter<Label extends keyof typeof knownLabels = never>(
    naming: Naming,
    ...labelNames: Label[]
  ): Counter<Label> {
    const added = new Counter({ ...naming, labelNames, registers });
    for (const labels of combineLabels(...labelNames)) added.inc(labels, 0);
    return added;
  }
  function histogram(naming: Naming, buckets: number[]): Histogram<"format"> {
    const added = new Histogram({ ...naming, labelNames: ["format"], buckets, registers });
    for (const labels of combineLabels("format")) added.zero(labels);
    return added;
  }
  return {
    requests: new Counter({
      ...metricNames.requests,
      labelNames: ["method", "route", "status"],
      registers,
    }),
    failures: counter(metricNames.failures, "code"),
    generations: counter(metricNames.generations, "format", "streamed", "outcome"),
    inputTokens: counter(metricNames.inputTokens, "format"),
    cachedInputTokens: counter(metricNames.cachedInputTokens, "format"),
    outputTokens: counter(metricNames.outputTokens, "format"),
    creditCharged: counter(metricNames.creditCharged),
    firstOutput: histogram(
      metricNames.firstOutput,
      [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    ),
    duration: histogram(
      metricNames.duration,
      [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800],
    ),
    refusals: counter(metricNames.refusals, "status"),
    settlementsLate: counter(metricNames.settlementsLate),
    leasesLost: counter(metricNames.leasesLost),
    reservationsExpired: counter(metricNames.reservationsExpired),
    ledgerRetries: counter(metricNames.ledgerRetries, "operation"),
  };
}

const metricNames = {
  requests: { name: "tributary_requests_total", help: "HTTP requests answered." },
  failures: {
    name: "tributary_failures_total",
    help: "Requests that failed, by failure code.",
  },
  generations: { name: "tributary_generations_total", help: "Generations that ended." },
  inputTokens: { name: "tributary_input_tokens_total", help: "Input tokens used." },
  cachedInputTokens: {
    name: "tributary_cached_input_tokens_total",
    help: "Input tokens that the deployment had in its cache.",
  },
  outputTokens: { name: "tributary_output_tokens_total", help: "Output tokens used." },
  creditCharged: { name: "tributary_credit_charged_total", help: "Credit charged." },
  firstOutput: {
    name: "tributary_first_output_seconds",
    help: "Time from admission to the first output.",
  },
  duration: { name: "tributary_generation_seconds", help: "Time from admission to the end." },
  refusals: {
    name: "tributary_deployment_refusals_total",
    help: "Requests that the deployment refused, by its status.",
  },
  settlementsLate: {
    name: "tributary_settlements_late_total",
    help: "Settlements that were not committed in time for the end of their answer.",
  },
  leasesLost: {
    name: "tributary_leases_lost_total",
    help: "Generations cancelled because their leases could not be renewed.",
  },
  reservationsExpired: {
    name: "tributary_reservations_expired_total",
    help: "Reservations of dead processes that were given back.",
  },
  ledgerRetries: {
    name: "tributary_ledger_retries_total",
    help: "Ledger operations tried again.",
  },
} as const satisfies Record<string, Naming>;

/** A gauge that is read when the metrics are. */
export function addGauge(registry: Registry, naming: Naming, read: () => number): void {
  const registers = [registry];
  void new Gauge({
    ...naming,
    registers,
    collect() {
      this.set(read());
    },
  });
}

/** Counts a request that has ended. */
export function countRequest(metrics: ServiceMetrics, facts: RequestFacts): void {
  const { generation, method } = facts;
  const route = facts.route === "" ? "none" : facts.route;
  metrics.requests.inc({ method, route, status: facts.status });
  if (facts.failureCode !== null) metrics.failures.inc({ code: facts.failureCode });
  if (generation === null) return;
  const { format } = generation;
  metrics.generations.inc({
    format,
    streamed: String(generation.streamed),
    outcome: generation.outcome,
  });
  metrics.inputTokens.inc({ format }, generation.inputTokens);
  metrics.cachedInputTokens.inc({ format }, generation.cachedInputTokens);
  metrics.outputTokens.inc({ format }, generation.outputTokens);
  metrics.creditCharged.inc(Number(generation.chargedNanos) / 1e9);
  metrics.duration.observe({ format }, generation.totalMs / 1000);
  if (generation.firstOutputMs !== null)
    metrics.firstOutput.observe({ format }, generation.firstOutputMs / 1000);
}
