import type { RequestFacts } from "./events.ts";
import { combineLabels, knownLabels } from "./known-labels.ts";
import type { MetricRegistry } from "./metrics.ts";

/** The metrics that business events move. */
export type ServiceMetrics = ReturnType<typeof addServiceMetrics>;

/** Adds them to a registry, with all their known labels at 0. */
export function addServiceMetrics(registry: MetricRegistry) {
  const { code, format, operation, outcome, refusalStatus, streamed } = knownLabels;
  const formats = combineLabels(format);
  const histogram = (name: string, help: string, bounds: readonly number[]) =>
    registry.histogram({ name, help, labels: ["format"] }, bounds).begin(formats);
  const perFormat = (name: string, help: string) =>
    registry.counter(name, help, ["format"]).begin(formats);
  return {
    requests: registry.counter("tributary_requests_total", "HTTP requests answered.", [
      "method",
      "route",
      "status",
    ]),
    failures: registry
      .counter("tributary_failures_total", "Requests that failed, by failure code.", ["code"])
      .begin(combineLabels(code)),
    generations: registry
      .counter("tributary_generations_total", "Generations that ended.", [
        "format",
        "streamed",
        "outcome",
      ])
      .begin(combineLabels(format, streamed, outcome)),
    inputTokens: perFormat("tributary_input_tokens_total", "Input tokens used."),
    cachedInputTokens: perFormat(
      "tributary_cached_input_tokens_total",
      "Input tokens that the deployment had in its cache.",
    ),
    outputTokens: perFormat("tributary_output_tokens_total", "Output tokens used."),
    creditCharged: registry.counter("tributary_credit_charged_total", "Credit charged."),
    firstOutput: histogram(
      "tributary_first_output_seconds",
      "Time from admission to the first output.",
      [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    ),
    duration: histogram(
      "tributary_generation_seconds",
      "Time from admission to the end.",
      [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800],
    ),
    refusals: registry
      .counter(
        "tributary_deployment_refusals_total",
        "Requests that the deployment refused, by its status.",
        ["status"],
      )
      .begin(combineLabels(refusalStatus)),
    settlementsLate: registry.counter(
      "tributary_settlements_late_total",
      "Settlements that were not committed in time for the end of their answer.",
    ),
    leasesLost: registry.counter(
      "tributary_leases_lost_total",
      "Generations cancelled because their leases could not be renewed.",
    ),
    reservationsExpired: registry.counter(
      "tributary_reservations_expired_total",
      "Reservations of dead processes that were given back.",
    ),
    ledgerRetries: registry
      .counter("tributary_ledger_retries_total", "Ledger operations tried again.", ["operation"])
      .begin(combineLabels(operation)),
  };
}

/** Counts a request that has ended. */
export function countRequest(metrics: ServiceMetrics, facts: RequestFacts): void {
  const { generation } = facts;
  metrics.requests.add(
    1,
    facts.method,
    facts.route === "" ? "none" : facts.route,
    String(facts.status),
  );
  if (facts.failureCode !== null) metrics.failures.add(1, facts.failureCode);
  if (generation === null) return;
  const { format } = generation;
  metrics.generations.add(1, format, String(generation.streamed), generation.outcome);
  metrics.inputTokens.add(generation.inputTokens, format);
  metrics.cachedInputTokens.add(generation.cachedInputTokens, format);
  metrics.outputTokens.add(generation.outputTokens, format);
  metrics.creditCharged.add(Number(generation.chargedNanos) / 1e9);
  metrics.duration.observe(generation.totalMs / 1000, format);
  if (generation.firstOutputMs !== null)
    metrics.firstOutput.observe(generation.firstOutputMs / 1000, format);
}
