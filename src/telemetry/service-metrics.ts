import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { GenerationFacts, RequestFacts } from "./events.ts";
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
  function histogram<Label extends keyof typeof knownLabels = "format">(
    naming: Naming,
    buckets: number[],
    labelNames = ["format" as Label],
  ): Histogram<Label> {
    const added = new Histogram({ ...naming, labelNames, buckets, registers });
    for (const labels of combineLabels(...labelNames)) added.zero(labels);
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
    admissionRefusals: counter(metricNames.admissionRefusals, "code"),
    firstOutput: histogram(
      metricNames.firstOutput,
      [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    ),
    timePerToken: histogram(
      metricNames.timePerToken,
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5],
    ),
    longestSilence: histogram(
      metricNames.longestSilence,
      [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
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
    ledgerAnswers: histogram(metricNames.ledgerAnswers, ledgerBuckets, ["step"]),
    ledgerCommits: histogram(metricNames.ledgerCommits, ledgerBuckets, []),
    ledgerGroups: histogram(metricNames.ledgerGroups, [1, 2, 4, 8, 16, 32, 64, 128, 256], []),
    events: counter(metricNames.events, "event"),
    certificateEnds: new Gauge({
      ...metricNames.certificateEnds,
      labelNames: ["file"],
      aggregator: "min",
      registers,
    }),
  };
}

/** A commit takes 0.2 ms on a good disk, and a server that is away is waited for through seconds. */
const ledgerBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

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
  admissionRefusals: {
    name: "tributary_admission_refusals_total",
    help: "Generation requests that were refused before they were admitted, by failure code.",
  },
  firstOutput: {
    name: "tributary_first_output_seconds",
    help: "Time from admission to the first output.",
  },
  timePerToken: {
    name: "tributary_time_per_output_token_seconds",
    help: "Mean time between two tokens of an answer, behind its first output.",
  },
  longestSilence: {
    name: "tributary_longest_silence_seconds",
    help: "Longest wait between two pieces of an answer, one observation an answer.",
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
  ledgerAnswers: {
    name: "tributary_ledger_answer_seconds",
    help: "Time from a question of a request to the ledger until its answer.",
  },
  ledgerCommits: {
    name: "tributary_ledger_commit_seconds",
    help: "Time in which the store did a group of admissions, settlements and changes, with its commit.",
  },
  ledgerGroups: {
    name: "tributary_ledger_group_calls",
    help: "Calls of the ledger that shared a commit.",
  },
  events: {
    name: "tributary_events_total",
    help: "Events of the ledger that this process gave out to webhooks, by type.",
  },
  certificateEnds: {
    name: "tributary_certificate_expiry_timestamp_seconds",
    help: "When the certificate ends that a listener shows, by its file, in seconds since 1970.",
  },
} as const satisfies Record<string, Naming>;

/** Counts a request that has ended. */
export function countRequest(metrics: ServiceMetrics, facts: RequestFacts): void {
  const { generation, method } = facts;
  const route = facts.route === "" ? "none" : facts.route;
  metrics.requests.inc({ method, route, status: facts.status });
  if (facts.failureCode !== null) metrics.failures.inc({ code: facts.failureCode });
  if (generation === null) {
    if (facts.failureCode !== null && generationRoutes.has(route))
      metrics.admissionRefusals.inc({ code: facts.failureCode });
    return;
  }
  const { firstOutputMs, format, longestSilenceMs, outcome, outputTokens, totalMs } = generation;
  metrics.generations.inc({
    format,
    streamed: String(generation.streamed),
    outcome,
  });
  metrics.inputTokens.inc({ format }, generation.inputTokens);
  metrics.cachedInputTokens.inc({ format }, generation.cachedInputTokens);
  metrics.outputTokens.inc({ format }, outputTokens);
  metrics.creditCharged.inc(Number(generation.chargedNanos) / 1e9);
  metrics.duration.observe({ format }, totalMs / 1000);
  if (firstOutputMs !== null) metrics.firstOutput.observe({ format }, firstOutputMs / 1000);
  if (longestSilenceMs !== null)
    metrics.longestSilence.observe({ format }, longestSilenceMs / 1000);
  const perTokenMs = timePerTokenMs(generation);
  if (perTokenMs !== null) metrics.timePerToken.observe({ format }, perTokenMs / 1000);
}

/** The mean time of a token behind the first output; null: the answer did not end well, or had fewer than two tokens. */
export function timePerTokenMs(generation: GenerationFacts): number | null {
  const { firstOutputMs, outcome, outputTokens, totalMs } = generation;
  if (outcome !== "completed" || firstOutputMs === null || outputTokens < 2) return null;
  return Math.max(totalMs - firstOutputMs, 0) / (outputTokens - 1);
}

/** Where a request is admitted. */
const generationRoutes: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
]);
