import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readOtlpSettings } from "../../src/telemetry/otlp-settings.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

describe("the standard variables", () => {
  test.each([
    [{}, null],
    [{ OTEL_SERVICE_NAME: "shop", OTEL_TRACES_SAMPLER: "always_on" }, null],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: " " }, null],
    [{ ...endpoint, OTEL_SDK_DISABLED: "True" }, null],
    [{ OTEL_TRACES_EXPORTER: "none" }, null],
    [endpoint, ["traces", "metrics", "logs"]],
    [{ ...endpoint, OTEL_METRICS_EXPORTER: "none" }, ["traces", "logs"]],
    [{ OTEL_TRACES_EXPORTER: "otlp" }, ["traces"]],
    [{ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "http://logs:4318/v1/logs" }, ["logs"]],
  ])("of %j switch on %j", (variables, signals) => {
    const settings = readOtlpSettings(variables);
    expect(settings === null ? null : [...settings.signals]).toEqual(signals);
  });

  test("say how often, how much and how long; what is no number above 0 counts as not set", () => {
    const settings = readOtlpSettings({
      ...endpoint,
      OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_BSP_MAX_QUEUE_SIZE: "many",
      OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: "-1",
      OTEL_METRIC_EXPORT_INTERVAL: "5000",
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01",
      OTEL_PROPAGATORS: "baggage",
    });
    expect(settings).toMatchObject({
      spans: { delayMs: 100, queueMax: 2_048, batchMax: 512, timeoutMs: 30_000 },
      logs: { delayMs: 1_000, batchMax: 512 },
      metrics: { intervalMs: 5_000, timeoutMs: 5_000 },
      sampler: { name: "traceidratio", argument: "0.01" },
      propagates: false,
      notOffered: [],
    });
  });

  test("that name what is not offered are named, and the standard is taken", () => {
    const settings = readOtlpSettings({
      ...endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
      OTEL_TRACES_SAMPLER: "jaeger_remote",
      OTEL_LOGS_EXPORTER: "console",
    });
    expect(settings?.notOffered.map((words) => words.split("=")[0])).toEqual([
      "OTEL_LOGS_EXPORTER",
      "OTEL_EXPORTER_OTLP_PROTOCOL",
      "OTEL_TRACES_SAMPLER",
    ]);
    expect(settings).toMatchObject({
      sampler: { name: "parentbased_always_on" },
      propagates: true,
    });
    expect([...(settings?.signals ?? [])]).toEqual(["traces", "metrics"]);
  });
});

test("what sends telemetry is loaded by one import that waits until it is wanted", () => {
  const root = join(import.meta.dirname, "../../src");
  const loading = globSync("**/*.ts", { cwd: root })
    .filter((file) => !file.startsWith(join("telemetry", "otlp/")))
    .flatMap((file) =>
      [
        ...readFileSync(join(root, file), "utf8").matchAll(
          /^.*["'](?:\S*\/otlp\/\S*|@opentelemetry\/\S*)["'].*$/gm,
        ),
      ].map(([line]) => `${file}: ${line.trim()}`),
    )
    .filter((line) => !/: import type /.test(line));
  expect(loading).toEqual([
    'cli/process-telemetry.ts: const { openOtlp } = await import("../telemetry/otlp/open-otlp.ts");',
  ]);
});
