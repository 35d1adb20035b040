import { createServer } from "node:http";
import { once } from "node:events";
import { openLog } from "../src/telemetry/log.ts";
import { readOtlpSettings } from "../src/telemetry/otlp-settings.ts";
import { openTelemetry, type ServiceTelemetry } from "../src/telemetry/telemetry.ts";
import { quietTimers } from "../src/timers.ts";
import { markdown } from "./markdown.ts";

// What telemetry takes of the processor for a request, without the request: in a whole service it is less than what other
// programs on the machine move.

const arms: Readonly<Record<string, Readonly<Record<string, string>> | null>> = {
  "not sent": null,
  "traces of 1 %": alone("0.01"),
  "all, traces of 1 %": { OTEL_TRACES_SAMPLER_ARG: "0.01" },
  "traces of every request": alone("1"),
  "all, every request": { OTEL_TRACES_SAMPLER_ARG: "1" },
};
const [rounds, warming, requests] = [9, 2, 4_000];

function alone(share: string): Readonly<Record<string, string>> {
  return {
    OTEL_TRACES_SAMPLER_ARG: share,
    OTEL_METRICS_EXPORTER: "none",
    OTEL_LOGS_EXPORTER: "none",
  };
}

/** Prints the microseconds of each arm, in rounds that take turns, and those that loading takes. */
export async function benchTelemetry(): Promise<void> {
  const endpoint = await openCollector();
  const before = process.cpuUsage();
  const { openOtlp } = await import("../src/telemetry/otlp/open-otlp.ts");
  process.stdout.write(`loaded in ${String(Math.round(cpuMicros(before) / 1_000))} ms of CPU\n\n`);
  // The exporters read it themselves.
  Reflect.set(process.env, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
  const opened: readonly Arm[] = Object.entries(arms).map(([name, variables]) => {
    const settings = readOtlpSettings({
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      ...variables,
    });
    if (settings === null || variables === null) return { name, telemetry: open(null), micros: [] };
    const otlp = openOtlp(settings, {
      version: "",
      instanceId: "bench",
      deployment: { "server.address": "127.0.0.1" },
      now: Date.now,
      timers: quietTimers,
      onExport: (signal, failure) => process.stderr.write(`${signal}: ${String(failure)}\n`),
    });
    return { name, telemetry: open(otlp), micros: [] };
  });
  for (let round = 0; round < rounds; round += 1)
    for (const arm of opened) {
      const micros = await measure(arm.telemetry);
      if (round >= warming) arm.micros.push(micros);
    }
  process.stdout.write(
    markdown(
      opened.map(({ micros, name }) => {
        const sorted = micros.toSorted((one, other) => one - other);
        return {
          sent: name,
          "µs of CPU a request, median": (sorted[sorted.length >> 1] ?? 0).toFixed(1),
          best: (sorted[0] ?? 0).toFixed(1),
        };
      }),
    ),
  );
}

interface Arm {
  readonly name: string;
  readonly telemetry: ServiceTelemetry;
  readonly micros: number[];
}

function open(otlp: Parameters<typeof openTelemetry>[0]["otlp"] | null): ServiceTelemetry {
  const destination = { write: () => undefined, flush: () => undefined };
  const log = openLog({ level: "info", format: "json", terminal: false, destination });
  return openTelemetry({ log, secrets: [], otlp: otlp ?? null });
}

/** With pauses, so that what was gathered is sent meanwhile. */
async function measure(telemetry: ServiceTelemetry): Promise<number> {
  const before = process.cpuUsage();
  for (let count = 1; count <= requests; count += 1) {
    serveOne(telemetry, `req_${String(count)}`);
    if (count % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (count % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 15));
  }
  return cpuMicros(before) / requests;
}

function serveOne(telemetry: ServiceTelemetry, requestId: string): void {
  const begun = { requestId, path: "/v1/messages", traceparent: undefined };
  const trace = telemetry.traces?.begin(begun) ?? null;
  for (const step of ["authorize", "admit", "settle"] as const)
    trace?.follow(step, Promise.resolve());
  trace?.ask({ model: "m", outputTokensMax: 100 }).end({
    errorType: null,
    finishReason: "stop",
    firstOutputMs: 3,
    usage: { inputTokens: 10, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
  });
  telemetry.requestEnded({
    requestId,
    method: "POST",
    route: "/v1/messages",
    path: null,
    client: "192.0.2.1",
    status: 200,
    failureCode: null,
    accountId: "acct_1",
    keyId: "key_1",
    totalMs: 10,
    generation: {
      format: "messages",
      streamed: true,
      outcome: "completed",
      allowance: 100,
      inputTokens: 10,
      outputTokens: 20,
      cachedInputTokens: 0,
      chargedNanos: 100n,
      firstOutputMs: 3,
      longestSilenceMs: 1,
      totalMs: 9,
    },
  });
}

function cpuMicros(before: NodeJS.CpuUsage): number {
  const { system, user } = process.cpuUsage(before);
  return user + system;
}

/** Takes what it is sent, as a collector would that has nothing to do. */
export async function openCollector(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().once("end", () => response.end());
  }).listen(0, "127.0.0.1");
  server.unref();
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${String(address.port)}`;
}
