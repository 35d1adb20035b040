import type { Logger } from "@opentelemetry/api";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-proto";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from "@opentelemetry/resources";
import {
  BatchLogRecordProcessor,
  LoggerProvider,
  type LogRecordExporter,
} from "@opentelemetry/sdk-logs";
import {
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { limits } from "../../limits.ts";
import type { Timers } from "../../timers.ts";
import type { RequestFacts } from "../events.ts";
import type { Lines } from "../lines.ts";
import type { BatchSettings, OtlpSettings } from "../otlp-settings.ts";
import type { Traces } from "../request-trace.ts";
import type { MetricsSnapshot } from "../whole-metrics.ts";
import { produceExposedMetrics } from "./exposed-metrics.ts";
import { type GenAiMetrics, openGenAiMetrics } from "./gen-ai.ts";
import { sendLines } from "./line-records.ts";
import { type DeploymentAddress, openRequestSpans } from "./request-spans.ts";
import { type ExportWatch, watchExports } from "./watched-exporter.ts";

/** What is sent by OTLP, beside the log and `/metrics`. */
export interface Otlp {
  /** null: traces are not sent. */
  readonly traces: Traces | null;
  requestEnded(facts: RequestFacts): void;
  /** The same lines, which from now on are sent, too, and name the trace of their request. */
  watchLines(lines: Lines): Lines;
  /** From now on the metrics of this process are sent. */
  watchMetrics(snapshot: () => Promise<MetricsSnapshot>): void;
  /** Sends what is left, for `limits.telemetryFlushMs` at most; false: not all of it has arrived by then. */
  close(): Promise<boolean>;
}

/** What OTLP is opened with. */
export interface OtlpParts {
  readonly version: string;
  /** Of this process, and of its number among several. */
  readonly instanceId: string;
  readonly process?: number;
  readonly deployment: DeploymentAddress;
  readonly now: () => number;
  readonly timers: Timers;
  readonly onExport: ExportWatch["changed"];
  /** Absent: those of the packages, which read where to send it from the standard variables. */
  readonly exporters?: {
    readonly traces: SpanExporter;
    readonly metrics: PushMetricExporter;
    readonly logs: LogRecordExporter;
  };
}

interface Closing {
  shutdown(): Promise<void>;
}

/** Begins to send. This file and all that it imports are loaded only where the standard variables switch it on. */
export function openOtlp(settings: OtlpSettings, parts: OtlpParts): Otlp {
  const resource = describeResource(parts);
  const open: Closing[] = [];
  const spans = openSpans(settings, { ...parts, resource, open });
  const logger = openLogger(settings, { ...parts, resource, open });
  let genAi: GenAiMetrics | null = null;
  return {
    traces: spans?.traces ?? null,
    requestEnded(facts) {
      spans?.requestEnded(facts);
      genAi?.count(facts);
    },
    watchLines: (lines) => sendLines(lines, { logger, spans }),
    watchMetrics(snapshot) {
      if (!settings.signals.has("metrics")) return;
      genAi = openGenAiMetrics();
      const producer = produceExposedMetrics(snapshot, { ...parts, genAi });
      open.push(openMeters(settings, { ...parts, resource, producer }));
    },
    close: () => closeWithin(open, parts.timers),
  };
}

type Opening = OtlpParts & { readonly resource: Resource };

/** What the operator names in OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES comes before it. */
function describeResource({ instanceId, process, version }: OtlpParts): Resource {
  const own = resourceFromAttributes({
    "service.name": "tributary",
    "service.version": version,
    "service.instance.id": instanceId,
    ...(process === undefined ? {} : { "tributary.process": process }),
  });
  const detectors = [resourceAttributesEnvDetector, serviceNameEnvDetector];
  return own.merge(detectResources({ detectors }));
}

function openSpans(settings: OtlpSettings, parts: Opening & { readonly open: Closing[] }) {
  if (!settings.signals.has("traces")) return null;
  const exporter = parts.exporters?.traces ?? new OTLPTraceExporter();
  const provider = new TracerProvider({
    resource: parts.resource,
    sampler: samplerOf(settings.sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: watchExports(exporter, "traces", { changed: parts.onExport }),
        ...batchOf(settings.spans),
      }),
    ],
  });
  parts.open.push(provider);
  const { deployment, version } = parts;
  const { propagates } = settings;
  return openRequestSpans(provider.getTracer("tributary", version), { propagates, deployment });
}

function openLogger(
  settings: OtlpSettings,
  parts: Opening & { readonly open: Closing[] },
): Logger | null {
  if (!settings.signals.has("logs")) return null;
  const exporter = parts.exporters?.logs ?? new OTLPLogExporter();
  const provider = new LoggerProvider({
    resource: parts.resource,
    processors: [
      new BatchLogRecordProcessor({
        exporter: watchExports(exporter, "logs", { changed: parts.onExport }),
        ...batchOf(settings.logs),
      }),
    ],
  });
  parts.open.push(provider);
  return provider.getLogger("tributary", parts.version);
}

function openMeters(
  { metrics }: OtlpSettings,
  parts: Opening & { readonly producer: MetricProducer },
): MeterProvider {
  const exporter = parts.exporters?.metrics ?? new OTLPMetricExporter();
  return new MeterProvider({
    resource: parts.resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: watchExports(exporter, "metrics", { changed: parts.onExport }),
        exportIntervalMillis: metrics.intervalMs,
        exportTimeoutMillis: metrics.timeoutMs,
        metricProducers: [parts.producer],
      }),
    ],
  });
}

function batchOf({ batchMax, delayMs, queueMax, timeoutMs }: BatchSettings) {
  return {
    maxExportBatchSize: Math.min(batchMax, queueMax),
    maxQueueSize: queueMax,
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: timeoutMs,
  };
}

function samplerOf({ argument, name }: OtlpSettings["sampler"]): Sampler {
  const parentBased = name.startsWith("parentbased_");
  const root = rootSampler(name.replace("parentbased_", ""), argument);
  return parentBased ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, argument: string | undefined): Sampler {
  if (name === "always_off") return new AlwaysOffSampler();
  if (name === "always_on") return new AlwaysOnSampler();
  const ratio = Number(argument);
  // What is no share counts as 1, as the standard wants it.
  const share = argument !== undefined && ratio >= 0 && ratio <= 1 ? ratio : 1;
  return new TraceIdRatioBasedSampler(share);
}

/** A collector that does not answer keeps nothing from ending. */
async function closeWithin(open: readonly Closing[], timers: Timers): Promise<boolean> {
  const closing = Promise.allSettled(open.map((one) => one.shutdown())).then(() => true);
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = timers.set(() => resolve(false), limits.telemetryFlushMs);
  const done = await Promise.race([closing, late]);
  timers.clear(timer);
  return done;
}
