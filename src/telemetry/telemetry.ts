import { Registry } from "prom-client";
import { failureKinds, type FailureLogLevel } from "../failure.ts";
import { describeCause } from "./describe-cause.ts";
import type { GenerationFacts, RequestFacts, Telemetry } from "./events.ts";
import { lifecycleEvent } from "./lifecycle-events.ts";
import type { Lines } from "./lines.ts";
import type { Log } from "./log.ts";
import type { Otlp } from "./otlp/open-otlp.ts";
import { probes } from "./probes.ts";
import { addDefaultMetrics, addLatenessMetrics } from "./process-metrics.ts";
import { openRepeatedLines } from "./repeated-lines.ts";
import { type GaugeReadings, watchGauges } from "./gauges.ts";
import { addServiceMetrics, countRequest, type ServiceMetrics } from "./service-metrics.ts";
import type { MetricsSnapshot } from "./whole-metrics.ts";
import { quietTimers, type Timers } from "../timers.ts";

/** The telemetry of one process: events go in, lines and metrics come out. */
export interface ServiceTelemetry extends Telemetry, Disposable {
  /** All metrics, in the text format that Prometheus reads. */
  metricsText(): Promise<string>;
  /** The same as values, to be added to those of other processes. */
  metricsSnapshot(): Promise<MetricsSnapshot>;
  /** Sets where gauges are read. */
  watch(readings: GaugeReadings): void;
  /** The ledger has answered a question of a request, with a failure or without. */
  ledgerAnswered(step: "authorize" | "admit" | "settle", ms: number): void;
  /** The store has done calls together, as one commit. */
  ledgerCommitted(facts: { readonly calls: number; readonly ms: number }): void;
  /** Events of these types were given out. */
  eventsGivenOut(types: readonly string[]): void;
  /** Requests, as `method`, `route` and `status`, that are counted from 0 on. */
  beginRequests(series: readonly (readonly [string, string, string])[]): void;
}

/** What telemetry is made of. */
export interface TelemetryOptions {
  readonly log: Log;
  /** Texts that no line may show, such as the deployment's key. */
  readonly secrets: readonly string[];
  readonly timers?: Timers;
  /** Whether `process_*` and `nodejs_*` are measured: for the one service of a process. */
  readonly defaultMetrics?: boolean;
  /** Where all of it is sent, too; absent: nowhere. */
  readonly otlp?: Pick<Otlp, "traces" | "requestEnded" | "watchLines" | "watchMetrics"> | null;
}

/** Opens the telemetry of a process; disposing it stops its measuring. */
export function openTelemetry(options: TelemetryOptions): ServiceTelemetry {
  const { log, otlp = null, secrets, timers = quietTimers } = options;
  const registry = new Registry();
  const metrics = addServiceMetrics(registry);
  const lateness = addLatenessMetrics(registry, timers);
  if (options.defaultMetrics === true) addDefaultMetrics(registry);
  const redact = redactor(secrets);
  const lines: Lines = otlp?.watchLines(log.lines) ?? log.lines;
  otlp?.watchMetrics(() => registry.getMetricsAsJSON());
  const withMessages = lines.isLevelEnabled("debug");
  const repeated = openRepeatedLines(
    (outcome, count) => lines.info({ outcome, count }, "requests not shown"),
    timers,
  );
  const cause = (error: unknown): object => describeCause(error, { withMessages, redact });
  return {
    traces: otlp?.traces ?? null,
    requestEnded(facts) {
      countRequest(metrics, facts);
      const level = requestLevel(facts);
      // A caller without a key can send any number of requests; those of a key are bounded by its rate.
      const first =
        level !== "info" || facts.accountId !== null || repeated.isFirst(outcomeOf(facts));
      lines[first ? level : "debug"](requestFields(facts, redact), "request");
      otlp?.requestEnded(facts);
    },
    failed(facts) {
      const level = isCode(facts.code) ? failureKinds[facts.code].logLevel : "error";
      lines[level]({ ...facts, cause: cause(facts.cause) }, "failure");
    },
    deploymentRefused({ words, ...facts }) {
      metrics.refusals.inc({ status: facts.status });
      const { type, code, param } = facts;
      const named = { type: nameOnly(type), code: nameOnly(code), param: nameOnly(param) };
      lines.warn({ ...facts, ...named }, "deployment refused");
      lines.debug({ requestId: facts.requestId, words: redact(words) }, "deployment words");
    },
    settlementLate(facts) {
      metrics.settlementsLate.inc();
      lines.warn(facts, "settlement late");
    },
    leasesLost(facts) {
      metrics.leasesLost.inc(facts.count);
      lines.error(facts, "leases lost");
    },
    reservationsExpired(facts) {
      metrics.reservationsExpired.inc(facts.count);
      if (facts.count > 0) lines.warn(facts, "reservations expired");
    },
    ledgerRetry(facts) {
      metrics.ledgerRetries.inc({ operation: facts.operation });
      lines.warn({ operation: facts.operation, cause: cause(facts.cause) }, "ledger retry");
    },
    notReady(facts) {
      lines.error({ reason: redact(facts.reason), cause: cause(facts.cause) }, "not ready");
    },
    lifecycle(event, fields) {
      const { level, remedy } = lifecycleEvent(event);
      const advice = remedy === undefined ? {} : { remedy };
      lines[level]({ ...redactFields(fields, redact), ...advice }, redact(event));
    },
    ...ofMetricsAlone(registry, metrics),
    [Symbol.dispose]() {
      lateness[Symbol.dispose]();
      repeated[Symbol.dispose]();
    },
  };
}

function ofMetricsAlone(
  registry: Registry,
  metrics: ServiceMetrics,
): Omit<ServiceTelemetry, Exclude<keyof Telemetry, "certificateUsed"> | typeof Symbol.dispose> {
  return {
    certificateUsed: ({ file, validTo }) =>
      metrics.certificateEnds.set({ file }, Date.parse(validTo) / 1_000),
    ledgerAnswered: (step, ms) => metrics.ledgerAnswers.observe({ step }, ms / 1_000),
    ledgerCommitted({ calls, ms }) {
      metrics.ledgerGroups.observe(calls);
      metrics.ledgerCommits.observe(ms / 1_000);
    },
    eventsGivenOut(types) {
      for (const event of types) metrics.events.inc({ event });
    },
    metricsText: () => registry.metrics(),
    metricsSnapshot: () => registry.getMetricsAsJSON(),
    watch: (gauges) => watchGauges(registry, gauges),
    beginRequests(series) {
      for (const [method, route, status] of series)
        metrics.requests.inc({ method, route, status }, 0);
    },
  };
}

function redactFields(fields: object, redact: (text: string) => string): object {
  const shown = Object.entries(fields).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === "string" ? redact(value) : value,
  ]);
  return Object.fromEntries(shown) as object;
}

function requestFields(facts: RequestFacts, redact: (text: string) => string): object {
  const { generation, method, path, requestId, route, totalMs, ...others } = facts;
  return {
    requestId,
    method,
    route,
    path: path === null ? null : redact(path),
    ...others,
    totalMs: round(totalMs),
    generation: generationFields(generation),
  };
}

function requestLevel({ failureCode, route }: RequestFacts): FailureLogLevel {
  if (failureCode !== null)
    return isCode(failureCode) ? failureKinds[failureCode].logLevel : "error";
  // A service that is not ready tells the log itself, once.
  return probes.has(route) ? "debug" : "info";
}

/** A failure code, or a status: words of which there are few. */
function outcomeOf({ failureCode, status }: RequestFacts): string {
  return failureCode ?? String(status);
}

function isCode(code: string): code is keyof typeof failureKinds {
  return Object.hasOwn(failureKinds, code);
}

function generationFields(facts: GenerationFacts | null): object | null {
  if (facts === null) return null;
  return {
    ...facts,
    // Exact: limits and prices keep every charge below 2^53.
    chargedNanos: Number(facts.chargedNanos),
    firstOutputMs: facts.firstOutputMs === null ? null : round(facts.firstOutputMs),
    longestSilenceMs: facts.longestSilenceMs === null ? null : round(facts.longestSilenceMs),
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
