import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { gaugeKeys } from "../../src/telemetry/gauges.ts";
import { lifecycleEvent, lifecycleEventNames } from "../../src/telemetry/lifecycle-events.ts";
import { openLog } from "../../src/telemetry/log.ts";
import { openTelemetry } from "../../src/telemetry/telemetry.ts";
import { readDocument, rowsOf } from "./tables.ts";

const root = join(import.meta.dirname, "../..");

/** Every call that a process's telemetry takes, once. */
async function tellEverything(): Promise<{
  readonly metrics: string;
  readonly lines: readonly string[];
}> {
  const lines: string[] = [];
  const destination = { write: (text: string) => void lines.push(text), flush: () => undefined };
  const log = openLog({ level: "debug", format: "json", terminal: false, destination });
  using telemetry = openTelemetry({ log, secrets: [] });
  telemetry.watch(Object.fromEntries(gaugeKeys.map((key) => [key, () => 0])));
  const requestId = "req_1";
  telemetry.requestEnded({
    requestId,
    method: "POST",
    route: "/v1/messages",
    path: null,
    status: 200,
    failureCode: "internal",
    client: "192.0.2.7",
    accountId: null,
    keyId: null,
    totalMs: 1,
    generation: {
      format: "messages",
      streamed: true,
      outcome: "failed",
      allowance: 1,
      inputTokens: 1,
      outputTokens: 1,
      cachedInputTokens: 1,
      chargedNanos: 1n,
      firstOutputMs: 1,
      longestSilenceMs: 25,
      totalMs: 1,
    },
  });
  telemetry.failed({ requestId, code: "internal", cause: null });
  const fields = { type: null, code: null, param: null, words: "" };
  telemetry.deploymentRefused({ requestId, status: 400, ...fields });
  telemetry.settlementLate({ requestId });
  telemetry.leasesLost({ count: 1 });
  telemetry.reservationsExpired({ count: 1 });
  telemetry.ledgerRetry({ operation: "settle", cause: null });
  telemetry.certificateUsed({ file: "cert.pem", validTo: "2030-01-01T00:00:00.000Z" });
  telemetry.notReady({ reason: "x", cause: null });
  return { metrics: await telemetry.metricsText(), lines };
}

const document = readDocument("docs/metrics.md");
const lifecyclePattern = /(?:\bonLifecycle(?:\?\.)?|\.lifecycle)\(\s*"([^"]+)"/g;
const sources = globSync("src/**/*.ts", { cwd: root }).map((path) =>
  readFileSync(join(root, path), "utf8"),
);
const namesIn = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([A-Za-z_]+)`/g)].map(([, name = ""]) => name);

describe("docs/metrics.md", () => {
  test("has a row for every metric as the process tells it, and no other", async () => {
    const { metrics } = await tellEverything();
    const told = [...metrics.matchAll(/^# HELP (\S+) (.+)\n# TYPE \S+ (\S+)\n(\S*)/gm)].map(
      ([, name = "", help = "", type = "", sample = ""]) => {
        // Without a sample its labels are not known: tell its event above.
        expect(sample.startsWith(name), `a sample of ${name}`).toBe(true);
        const labels = [...sample.matchAll(/(\w+)="/g)].map(([, label = ""]) => label);
        return [name, type, labels.filter((label) => label !== "le"), help];
      },
    );
    expect(told.length).toBeGreaterThan(10);
    const rows = rowsOf(document, /^`tributary_/).map(([name = "", type, labels = "", help]) => [
      ...namesIn(name),
      type,
      namesIn(labels),
      help,
    ]);
    const order = (all: readonly (readonly unknown[])[]): readonly unknown[] =>
      all.toSorted(([a], [b]) => String(a).localeCompare(String(b)));
    expect(order(rows)).toEqual(order(told));
  });

  test("has a row for every event of the source, and no other", () => {
    const events = sources.flatMap((source) => {
      const lines =
        /\blines(?:\.(?:trace|debug|info|warn|error)|\[[^\]]+\])\([^;]*?"([^"]+)",?\s*\)/g;
      const printed = /\bevent: "([^"]+)"/g;
      return [lifecyclePattern, lines, printed].flatMap((pattern) =>
        [...source.matchAll(pattern)].map(([, event = ""]) => event),
      );
    });
    expect(events.length).toBeGreaterThan(15);
    const rows = document.slice(document.indexOf("## Log lines"));
    const named = rowsOf(rows, /^`[a-z_ ]+`$/).map(([event = ""]) => event.slice(1, -1));
    expect(named.toSorted()).toEqual([...new Set(events)].toSorted());
  });

  test("and the source's table give every change of state its level, and a remedy where it is needed", () => {
    const told = sources.flatMap((source) =>
      [...source.matchAll(lifecyclePattern)].map(([, event = ""]) => event),
    );
    expect(new Set(told)).toEqual(new Set(lifecycleEventNames));
    for (const event of told) {
      const { level, remedy } = lifecycleEvent(event);
      const [row] = rowsOf(document, new RegExp(`^\`${event}\`$`));
      expect(row?.[1], event).toBe(`\`${level}\``);
      expect(namesIn(row?.[2] ?? "").includes("remedy"), event).toBe(remedy !== undefined);
      if (level !== "info") expect(remedy, event).toMatch(/^[A-Z].+\.$/);
    }
  });

  test("names the fields and the level of what telemetry writes", async () => {
    for (const line of (await tellEverything()).lines) {
      const { level, time: _time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
      const [row] = rowsOf(document, new RegExp(`^\`${String(event)}\`$`));
      expect(namesIn(row?.[2] ?? ""), String(event)).toEqual(Object.keys(fields));
      if (row?.[1]?.startsWith("by ") !== true)
        expect(row?.[1], String(event)).toBe(`\`${String(level)}\``);
    }
    const { lines } = await tellEverything();
    const { generation } = JSON.parse(lines[0] ?? "") as { generation: object };
    const [row] = rowsOf(document, /^`request`$/);
    expect(namesIn(row?.[3] ?? "")).toEqual(["generation", ...Object.keys(generation)]);
  });
});
