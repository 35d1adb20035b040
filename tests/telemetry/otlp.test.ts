import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { ReadableLogRecord } from "@opentelemetry/sdk-logs";
import { DataPointType, type ResourceMetrics } from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import { limits } from "../../src/limits.ts";
import type { RequestFacts } from "../../src/telemetry/events.ts";
import { openLog } from "../../src/telemetry/log.ts";
import { openOtlp } from "../../src/telemetry/otlp/open-otlp.ts";
import { readOtlpSettings } from "../../src/telemetry/otlp-settings.ts";
import { openTelemetry } from "../../src/telemetry/telemetry.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";
const span = "b7ad6b7169203331";

const facts: RequestFacts = {
  requestId: "req_1",
  method: "POST",
  route: "/v1/messages",
  path: null,
  client: "192.0.2.1",
  status: 200,
  failureCode: null,
  accountId: "acct_1",
  keyId: "key_1",
  totalMs: 12,
  generation: null,
};

/** OTLP whose collector is the test. */
function open(
  variables: Readonly<Record<string, string>> = {},
  collector: { readonly level?: "info" | "debug"; answers: boolean; code: number } = {
    answers: true,
    code: 0,
  },
) {
  const spans: ReadableSpan[] = [];
  const records: ReadableLogRecord[] = [];
  const metrics: ResourceMetrics[] = [];
  const changes: string[] = [];
  const written: string[] = [];
  const timers = openManualTimers();
  const settings = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://x", ...variables });
  if (settings === null) throw new Error("it is off");
  const exporter = <Items>(take: (items: Items) => void) => ({
    export(items: Items, done: (result: { code: number; error?: Error }) => void) {
      if (!collector.answers) return;
      if (collector.code === 0) take(items);
      done({ code: collector.code, ...(collector.code === 0 ? {} : { error: new Error("away") }) });
    },
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  });
  const otlp = openOtlp(settings, {
    version: "1",
    instanceId: "one",
    deployment: {},
    now: Date.now,
    timers,
    onExport: (signal, failure) => void changes.push(`${signal} ${failure?.message ?? "well"}`),
    exporters: {
      traces: exporter<ReadableSpan[]>((items) => void spans.push(...items)),
      logs: exporter<ReadableLogRecord[]>((items) => void records.push(...items)),
      metrics: exporter<ResourceMetrics>((items) => void metrics.push(items)),
    },
  });
  const destination = { write: (text: string) => void written.push(text), flush: () => undefined };
  const log = openLog({
    level: collector.level ?? "info",
    format: "json",
    terminal: false,
    destination,
  });
  const telemetry = openTelemetry({ log, secrets: [], timers, otlp });
  const begin = (traceparent?: string, path = "/v1/messages") =>
    telemetry.traces?.begin({ requestId: "req_1", path, traceparent }) ?? null;
  return { otlp, telemetry, timers, spans, records, metrics, changes, written, begin };
}

const asked = { model: "m", outputTokensMax: 5 };

test.each([
  [{ OTEL_TRACES_SAMPLER: "always_off" }, `00-${trace}-${span}-01`, 0, "00"],
  [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" }, undefined, 0, "00"],
  [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" }, undefined, 2, "01"],
  [{}, `00-${trace}-${span}-00`, 0, "00"],
  [{}, `00-${trace}-${span}-01`, 2, "01"],
  [{}, undefined, 2, "01"],
])(
  "with %j and %j of a caller %i spans are sent, and the deployment hears so",
  async (variables, header, count, flags) => {
    const { begin, otlp, spans, telemetry } = open(variables);
    const request = begin(header);
    const question = request?.ask(asked);
    const [, id, own, flag] = question?.traceparent?.split("-") ?? [];
    if (header !== undefined) expect(id).toBe(trace);
    expect(own).not.toBe(span);
    expect(flag).toBe(flags);
    question?.end({ errorType: null, finishReason: "stop", firstOutputMs: 1, usage: null });
    telemetry.requestEnded(facts);
    expect(await otlp.close()).toBe(true);
    expect(spans).toHaveLength(count);
  },
);

test.each([
  "",
  "garbage",
  `ff-${trace}-${span}-01`,
  `00-${"0".repeat(32)}-${span}-01`,
  `00-${trace}-${span}-01-more`,
  `00-${trace.toUpperCase()}-${span}-01`,
])("%j of a caller begins a trace of its own", (header) => {
  const traceparent = open().begin(header)?.ask(asked).traceparent;
  expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  expect(traceparent).not.toContain(trace);
});

test("without the propagator nothing is taken from callers, and nothing handed on", async () => {
  const { begin, otlp, spans, telemetry } = open({ OTEL_PROPAGATORS: "none" });
  expect(begin(`00-${trace}-${span}-00`)?.ask(asked).traceparent).toBeNull();
  telemetry.requestEnded(facts);
  await otlp.close();
  expect(spans.map(({ name }) => name)).toEqual(["POST /v1/messages"]);
  expect(spans[0]?.spanContext().traceId).not.toBe(trace);
});

test("probes have no trace", () => {
  expect(open().begin(undefined, "/readyz")).toBeNull();
});

test("a step ends with what became of it: the code of a failure, or the class of an error, and no word of either", async () => {
  const { begin, otlp, spans, telemetry } = open();
  const request = begin();
  request?.follow("authorize", Promise.resolve());
  request?.follow("admit", Promise.reject(new Failure("budget_exceeded", "MARKER")));
  request?.follow("settle", Promise.reject(new TypeError("MARKER")));
  await new Promise((resolve) => setImmediate(resolve));
  telemetry.requestEnded({ ...facts, status: 402, failureCode: "budget_exceeded" });
  await otlp.close();
  expect(spans.map(({ attributes, name }) => [name, attributes["error.type"]])).toEqual([
    ["authorize", undefined],
    ["admit", "budget_exceeded"],
    ["settle", "TypeError"],
    ["POST /v1/messages", "budget_exceeded"],
  ]);
  expect(
    JSON.stringify(spans.map(({ attributes, events, status }) => [attributes, events, status])),
  ).not.toContain("MARKER");
});

test("lines below info are not sent, and at debug no words of an error: both may quote a prompt", async () => {
  const { begin, otlp, records, telemetry, written } = open(
    {},
    { level: "debug", answers: true, code: 0 },
  );
  begin(`00-${trace}-${span}-01`);
  telemetry.failed({ requestId: "req_1", code: "internal", cause: new Error("MARKER") });
  const refused = { status: 400, type: null, code: null, param: null, words: "MARKER" };
  telemetry.deploymentRefused({ requestId: "req_1", ...refused });
  telemetry.lifecycle("draining", { seconds: 3 });
  await otlp.close();
  expect(written.join("").match(/MARKER/g)).toHaveLength(2);
  expect(records.map(({ body }) => body)).toEqual(["failure", "deployment refused", "draining"]);
  expect(records.map(({ spanContext }) => spanContext?.traceId)).toEqual([trace, trace, undefined]);
  expect(JSON.stringify(records.map(({ attributes }) => attributes))).not.toContain("MARKER");
  expect(written.filter((line) => line.includes(`"traceId":"${trace}"`))).toHaveLength(2);
});

test("of a request that is not sampled only what went wrong is sent, and its line names the trace all the same", async () => {
  const { begin, otlp, records, telemetry, written } = open();
  begin(`00-${trace}-${span}-00`);
  telemetry.settlementLate({ requestId: "req_1" });
  telemetry.requestEnded(facts);
  telemetry.lifecycle("draining", { seconds: 3 });
  await otlp.close();
  expect(records.map(({ body }) => body)).toEqual(["settlement late", "draining"]);
  expect(written.filter((line) => line.includes(`"traceId":"${trace}"`))).toHaveLength(2);
});

test("the metrics of /metrics are sent as they are there", async () => {
  const { metrics, otlp, telemetry } = open();
  telemetry.ledgerCommitted({ calls: 3, ms: 20 });
  telemetry.ledgerCommitted({ calls: 300, ms: 20 });
  await otlp.close();
  const sent = metrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap((scope) => scope.metrics),
  );
  const groups = sent.find(({ descriptor }) => descriptor.name === "tributary_ledger_group_calls");
  expect(groups?.dataPoints).toMatchObject([
    {
      value: {
        buckets: {
          boundaries: [1, 2, 4, 8, 16, 32, 64, 128, 256],
          counts: [0, 0, 1, 0, 0, 0, 0, 0, 0, 1],
        },
        sum: 303,
        count: 2,
      },
    },
  ]);
  const failures = sent.find(({ descriptor }) => descriptor.name === "tributary_failures_total");
  expect(failures?.dataPoints.map(({ attributes }) => attributes["code"])).toContain("internal");
});

test("a generation is counted by the conventions: each bound belongs to the bucket below it, and only a failed one has a type of error", async () => {
  const { metrics, otlp, telemetry } = open();
  const generation = {
    format: "messages",
    streamed: true,
    outcome: "completed",
    allowance: 9,
    inputTokens: 64,
    outputTokens: 3,
    cachedInputTokens: 0,
    chargedNanos: 1n,
    firstOutputMs: 20,
    longestSilenceMs: 1,
    totalMs: 120,
  };
  telemetry.requestEnded({ ...facts, totalMs: 160, generation });
  const failed = { ...generation, outcome: "failed", firstOutputMs: null };
  telemetry.requestEnded({ ...facts, failureCode: "internal", generation: failed });
  await otlp.close();
  const pointsOf = (name: string) =>
    metrics
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      .filter(({ descriptor }) => descriptor.name === `gen_ai.${name}`)
      .flatMap((metric) =>
        metric.dataPointType === DataPointType.HISTOGRAM ? metric.dataPoints : [],
      )
      .map(({ attributes, value: { buckets, count, sum } }) => {
        expect(buckets.counts).toHaveLength(buckets.boundaries.length + 1);
        const upTo = buckets.counts.flatMap((one, at) =>
          one === 0 ? [] : [buckets.boundaries[at]],
        );
        return {
          of: attributes["error.type"] ?? attributes["gen_ai.token.type"],
          count,
          sum,
          upTo,
        };
      });
  expect(pointsOf("server.request.duration")).toEqual([
    { of: undefined, count: 1, sum: 0.16, upTo: [0.16] },
    { of: "internal", count: 1, sum: 0.012, upTo: [0.02] },
  ]);
  expect(pointsOf("server.time_to_first_token")).toMatchObject([{ count: 1, upTo: [0.02] }]);
  expect(pointsOf("server.time_per_output_token")).toMatchObject([{ count: 1, upTo: [0.05] }]);
  expect(pointsOf("client.token.usage")).toEqual([
    { of: "input", count: 2, sum: 128, upTo: [64] },
    { of: "output", count: 2, sum: 6, upTo: [4] },
  ]);
});

test("a collector that fails is named once, and once when it takes something again", async () => {
  const collector = { answers: true, code: 1 };
  const { changes, telemetry, otlp } = open(
    {
      OTEL_TRACES_EXPORTER: "none",
      OTEL_METRICS_EXPORTER: "none",
      OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: "1",
    },
    collector,
  );
  const line = async (): Promise<void> => {
    telemetry.lifecycle("draining", { seconds: 1 });
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await line();
  await line();
  expect(changes).toEqual(["logs away"]);
  collector.code = 0;
  await line();
  await line();
  expect(changes).toEqual(["logs away", "logs well"]);
  await otlp.close();
});

test("a collector that does not answer is waited for so long, and no longer", async () => {
  const { otlp, telemetry, timers } = open({}, { answers: false, code: 0 });
  telemetry.lifecycle("draining", { seconds: 1 });
  const closing = otlp.close();
  timers.advance(limits.telemetryFlushMs);
  expect(await closing).toBe(false);
});
