import { monitorEventLoopDelay } from "node:perf_hooks";
import { failureKinds, type FailureLogLevel } from "../failure.ts";
import { describeCause } from "./describe-cause.ts";
import type { GenerationFacts, RequestFacts, Telemetry } from "./events.ts";
import { lifecycleEvent } from "./lifecycle-events.ts";
import type { Log } from "./log.ts";
import { MetricRegistry } from "./metrics.ts";

/** The telemetry of one process: events go in, lines and metrics come out. */
export interface ServiceTelemetry extends Telemetry, Disposable {
  /** All metrics, in the text format that Prometheus reads. */
  metricsText(): string;
  /** Tells where the number of running generations is read. */
  watchRunningGenerations(read: () => number): void;
}

/** What telemetry is made of. */
export interface TelemetryOptions {
  readonly log: Log;
  /** Texts that no line may show, such as the deployment's key. */
  readonly secrets: readonly string[];
}

/** Paths that machines ask for all day long. */
const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics", "/", "/api/hello"]);

/** Opens the telemetry of a process; disposing it stops its measuring. */
export function openTelemetry({ log, secrets }: TelemetryOptions): ServiceTelemetry {
  const registry = new MetricRegistry();
  const metrics = addMetrics(registry);
  const stopMeasuring = addProcessGauges(registry);
  const redact = redactor(secrets);
  const lines = log.lines;
  const withMessages = lines.isLevelEnabled("debug");
  const cause = (error: unknown): object => describeCause(error, { withMessages, redact });
  return {
    requestEnded(facts) {
      countRequest(metrics, facts);
      const { generation, totalMs, ...rest } = facts;
      const line = { ...rest, totalMs: round(totalMs), generation: generationFields(generation) };
      lines[requestLevel(facts)](line, "request");
    },
    failed(facts) {
      const level = isCode(facts.code) ? failureKinds[facts.code].logLevel : "error";
      lines[level]({ ...facts, cause: cause(facts.cause) }, "failure");
    },
    deploymentRefused({ words, ...facts }) {
      metrics.refusals.add(1, String(facts.status));
      const { type, code, param } = facts;
      const named = { type: nameOnly(type), code: nameOnly(code), param: nameOnly(param) };
      lines.warn({ ...facts, ...named }, "deployment refused");
      lines.debug({ requestId: facts.requestId, words: redact(words) }, "deployment words");
    },
    settlementLate(facts) {
      metrics.settlementsLate.add(1);
      lines.warn(facts, "settlement late");
    },
    leasesLost(facts) {
      metrics.leasesLost.add(facts.count);
      lines.error(facts, "leases lost");
    },
    reservationsExpired(facts) {
      metrics.reservationsExpired.add(facts.count);
      if (facts.count > 0) lines.warn(facts, "reservations expired");
    },
    ledgerRetry(facts) {
      metrics.ledgerRetries.add(1, facts.operation);
      lines.warn({ operation: facts.operation, cause: cause(facts.cause) }, "ledger retry");
    },
    notReady(facts) {
      lines.error({ reason: redact(facts.reason), cause: cause(facts.cause) }, "not ready");
    },
    lifecycle(event, fields) {
      const shown = Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === "string" ? redact(value) : value,
      ]);
      const { level, remedy } = lifecycleEvent(event);
      const advice = remedy === undefined ? {} : { remedy };
      lines[level]({ ...Object.fromEntries(shown), ...advice }, redact(event));
    },
    metricsText: () => registry.render(),
    watchRunningGenerations(read) {
      const name = "tributary_running_generations";
      registry.gauge({ name, help: "Generations under way.", labels: [] }, () => [
        { labels: [], value: read() },
      ]);
    },
    [Symbol.dispose]: stopMeasuring,
  };
}

type Metrics = ReturnType<typeof addMetrics>;

function addMetrics(registry: MetricRegistry) {
  const histogram = (name: string, help: string, bounds: readonly number[]) =>
    registry.histogram({ name, help, labels: ["format"] }, bounds);
  return {
    requests: registry.counter("tributary_requests_total", "HTTP requests answered.", [
      "method",
      "route",
      "status",
    ]),
    failures: registry.counter(
      "tributary_failures_total",
      "Requests that failed, by failure code.",
      ["code"],
    ),
    generations: registry.counter("tributary_generations_total", "Generations that ended.", [
      "format",
      "streamed",
      "outcome",
    ]),
    inputTokens: registry.counter("tributary_input_tokens_total", "Input tokens used.", ["format"]),
    cachedInputTokens: registry.counter(
      "tributary_cached_input_tokens_total",
      "Input tokens that the deployment had in its cache.",
      ["format"],
    ),
    outputTokens: registry.counter("tributary_output_tokens_total", "Output tokens used.", [
      "format",
    ]),
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
    refusals: registry.counter(
      "tributary_deployment_refusals_total",
      "Requests that the deployment refused, by its status.",
      ["status"],
    ),
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
    ledgerRetries: registry.counter(
      "tributary_ledger_retries_total",
      "Ledger operations tried again.",
      ["operation"],
    ),
  };
}

function countRequest(metrics: Metrics, facts: RequestFacts): void {
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

function requestLevel({ failureCode, route }: RequestFacts): FailureLogLevel {
  if (failureCode !== null)
    return isCode(failureCode) ? failureKinds[failureCode].logLevel : "error";
  // A service that is not ready tells the log itself, once.
  return probes.has(route) ? "debug" : "info";
}

function isCode(code: string): code is keyof typeof failureKinds {
  return Object.hasOwn(failureKinds, code);
}

function generationFields(facts: GenerationFacts | null): object | null {
  if (facts === null) return null;
  return {
    ...facts,
    chargedNanos: String(facts.chargedNanos),
    firstOutputMs: facts.firstOutputMs === null ? null : round(facts.firstOutputMs),
    totalMs: round(facts.totalMs),
  };
}

/** Identifiers pass; a deployment that puts sentences where a name belongs may be quoting a prompt. */
function nameOnly(text: string | null): string | null {
  return text === null || /^[\w.[\]-]{1,80}$/.test(text) ? text : "(no name)";
}

function redactor(secrets: readonly string[]): (text: string) => string {
  const known = secrets.filter((secret) => secret !== "");
  return (text) => {
    let shown = text.replaceAll(/trib_[0-9A-Za-z]+_[0-9A-Za-z]+_[0-9A-Za-z]+/g, "trib_(not shown)");
    for (const secret of known) shown = shown.replaceAll(secret, "(not shown)");
    return shown;
  };
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}

function addProcessGauges(registry: MetricRegistry): () => void {
  const resolutionMs = 20;
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  // The monitor measures from one tick of its timer to the next, so the timer's own period is not lateness.
  const seconds = (nanos: number): number => Math.max(nanos / 1e9 - resolutionMs / 1e3, 0);
  const lateness = "tributary_event_loop_lateness_seconds";
  registry.gauge(
    { name: lateness, help: "How late timers ran since the last reading.", labels: ["quantile"] },
    () => {
      const idle = delay.count === 0;
      const readings = [50, 99, 100].map((percent) => ({
        labels: [String(percent / 100)],
        value: idle ? 0 : seconds(delay.percentile(percent)),
      }));
      delay.reset();
      return readings;
    },
  );
  const gauge = (name: string, help: string, read: () => number): void =>
    registry.gauge({ name, help, labels: [] }, () => [{ labels: [], value: read() }]);
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge(
    "tributary_heap_used_bytes",
    "Memory that JavaScript values use.",
    () => process.memoryUsage().heapUsed,
  );
  const startedAt = Date.now() / 1000 - process.uptime();
  gauge("process_start_time_seconds", "Start of the process, Unix time.", () => startedAt);
  return () => void delay.disable();
}
