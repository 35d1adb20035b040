/** What is sent. */
export type Signal = "traces" | "metrics" | "logs";

/** What the standard variables say, as far as the packages of OpenTelemetry leave it to the program. Times in milliseconds. */
export interface OtlpSettings {
  readonly signals: ReadonlySet<Signal>;
  /** Whether the trace of a caller is gone on with, and handed to the deployment. */
  readonly propagates: boolean;
  readonly sampler: { readonly name: string; readonly argument: string | undefined };
  readonly spans: BatchSettings;
  readonly logs: BatchSettings;
  readonly metrics: { readonly intervalMs: number; readonly timeoutMs: number };
  /** Values that are not offered, in words; what is standard is taken instead. */
  readonly notOffered: readonly string[];
}

/** How spans or records of the log are gathered. */
export interface BatchSettings {
  readonly delayMs: number;
  readonly timeoutMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
}

type Variables = Readonly<Record<string, string | undefined>>;

const signals: readonly Signal[] = ["traces", "metrics", "logs"];

/** null: telemetry is off, since no variable names where it goes, or `OTEL_SDK_DISABLED` is `true`. */
export function readOtlpSettings(variables: Variables): OtlpSettings | null {
  if (textOf(variables, "OTEL_SDK_DISABLED")?.toLowerCase() === "true") return null;
  const notOffered: string[] = [];
  const on = signals.filter((signal) => isOn(variables, signal, notOffered));
  if (on.length === 0) return null;
  const protocols = [
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    ...on.map((signal) => `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_PROTOCOL`),
  ];
  for (const name of protocols) {
    const protocol = textOf(variables, name);
    if (protocol !== null && protocol !== "http/protobuf")
      notOffered.push(`${name}=${protocol}: http/protobuf is sent`);
  }
  const propagators = (textOf(variables, "OTEL_PROPAGATORS") ?? "tracecontext").split(",");
  return {
    signals: new Set(on),
    propagates: propagators.some((name) => name.trim() === "tracecontext"),
    sampler: readSampler(variables, notOffered),
    spans: readBatch(variables, "OTEL_BSP", 5_000),
    logs: readBatch(variables, "OTEL_BLRP", 1_000),
    metrics: readMetricTimes(variables),
    notOffered,
  };
}

/** By its own exporter or endpoint, else by the endpoint of all. */
function isOn(variables: Variables, signal: Signal, notOffered: string[]): boolean {
  const name = `OTEL_${signal.toUpperCase()}_EXPORTER`;
  const exporter = textOf(variables, name);
  if (exporter === "none") return false;
  if (exporter !== null && exporter !== "otlp") {
    notOffered.push(`${name}=${exporter}: otlp and none are offered`);
    return false;
  }
  const endpoint =
    textOf(variables, `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`) ??
    textOf(variables, "OTEL_EXPORTER_OTLP_ENDPOINT");
  return exporter !== null || endpoint !== null;
}

const samplers: ReadonlySet<string> = new Set(
  ["always_on", "always_off", "traceidratio"].flatMap((name) => [name, `parentbased_${name}`]),
);

function readSampler(variables: Variables, notOffered: string[]): OtlpSettings["sampler"] {
  const argument = textOf(variables, "OTEL_TRACES_SAMPLER_ARG") ?? undefined;
  const name = textOf(variables, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  if (samplers.has(name)) return { name, argument };
  notOffered.push(`OTEL_TRACES_SAMPLER=${name}: parentbased_always_on is taken`);
  return { name: "parentbased_always_on", argument };
}

function readBatch(variables: Variables, prefix: string, delayMs: number): BatchSettings {
  return {
    delayMs: numberOf(variables, `${prefix}_SCHEDULE_DELAY`, delayMs),
    timeoutMs: numberOf(variables, `${prefix}_EXPORT_TIMEOUT`, 30_000),
    queueMax: numberOf(variables, `${prefix}_MAX_QUEUE_SIZE`, 2_048),
    batchMax: numberOf(variables, `${prefix}_MAX_EXPORT_BATCH_SIZE`, 512),
  };
}

/** The package refuses a time limit that is longer than the interval. */
function readMetricTimes(variables: Variables): OtlpSettings["metrics"] {
  const intervalMs = numberOf(variables, "OTEL_METRIC_EXPORT_INTERVAL", 60_000);
  const timeoutMs = numberOf(variables, "OTEL_METRIC_EXPORT_TIMEOUT", 30_000);
  return { intervalMs, timeoutMs: Math.min(timeoutMs, intervalMs) };
}

/** What is no number above 0 counts as not set, as the standard wants it. */
function numberOf(variables: Variables, name: string, otherwise: number): number {
  const value = Number(textOf(variables, name) ?? Number.NaN);
  return Number.isFinite(value) && value > 0 ? Math.floor(value) : otherwise;
}

/** An empty value counts as none. */
function textOf(variables: Variables, name: string): string | null {
  const value = variables[name]?.trim() ?? "";
  return value === "" ? null : value;
}
