import { describe, expect, it } from "vitest";
import { failureKinds } from "../../src/failure.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import { knownRequests } from "../../src/http/routes.ts";
import { eventTypes } from "../../src/ledger/event-record.ts";
import type { SettlementOutcome } from "../../src/ledger/receipt.ts";
import { watchLateness } from "../../src/telemetry/lateness.ts";
import type { GenerationFacts, RequestFacts } from "../../src/telemetry/events.ts";
import { type Log, type LogOptions, openLog } from "../../src/telemetry/log.ts";
import { openTelemetry, type ServiceTelemetry } from "../../src/telemetry/telemetry.ts";

interface Opened {
  readonly log: Log;
  readonly telemetry: ServiceTelemetry;
  readonly text: () => string;
  readonly lines: () => Record<string, unknown>[];
}

function open(options: Partial<LogOptions> = {}, secrets: readonly string[] = []): Opened {
  const written: string[] = [];
  const log = openLog({
    level: "info",
    format: "json",
    terminal: false,
    destination: { write: (text) => void written.push(text), flush: () => {} },
    ...options,
  });
  const text = (): string => written.join("");
  return {
    log,
    telemetry: openTelemetry({ log, secrets }),
    text,
    lines: () =>
      text()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

const outcomes = {
  completed: true,
  cancelled: true,
  "cancelled-before-output": true,
  refused: true,
  failed: true,
  "cancelled-by-operator": true,
  "lease-lost": true,
} satisfies Record<SettlementOutcome, true>;

const generation: GenerationFacts = {
  format: "messages",
  streamed: true,
  outcome: "completed",
  allowance: 4096,
  inputTokens: 12,
  outputTokens: 34,
  cachedInputTokens: 5,
  chargedNanos: 1_500_000_000n,
  firstOutputMs: 40,
  longestSilenceMs: 25,
  totalMs: 700.04,
};

const request: RequestFacts = {
  requestId: "req_1",
  method: "POST",
  route: "/v1/messages",
  path: null,
  status: 200,
  failureCode: null,
  client: "192.0.2.7",
  accountId: "acct_1",
  keyId: "key_1",
  totalMs: 712.345,
  generation,
};

describe("a request that ended", () => {
  it("is one line with what it was, how it ended and what it cost", () => {
    const { telemetry, lines } = open();
    telemetry.requestEnded(request);
    expect(lines()).toEqual([
      {
        level: "info",
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
        event: "request",
        requestId: "req_1",
        method: "POST",
        route: "/v1/messages",
        path: null,
        status: 200,
        failureCode: null,
        client: "192.0.2.7",
        accountId: "acct_1",
        keyId: "key_1",
        totalMs: 712.3,
        generation: { ...generation, chargedNanos: 1_500_000_000, totalMs: 700 },
      },
    ]);
  });

  it("moves the metrics of requests, tokens, credit and time", async () => {
    const { telemetry } = open();
    telemetry.requestEnded(request);
    telemetry.requestEnded({ ...request, status: 502, failureCode: "deployment_failed" });
    telemetry.requestEnded({ ...request, route: "", status: 404, generation: null });
    const metrics = await telemetry.metricsText();
    for (const line of [
      'tributary_requests_total{method="POST",route="/v1/messages",status="200"} 1',
      'tributary_requests_total{method="POST",route="none",status="404"} 1',
      'tributary_failures_total{code="deployment_failed"} 1',
      'tributary_generations_total{format="messages",streamed="true",outcome="completed"} 2',
      'tributary_input_tokens_total{format="messages"} 24',
      'tributary_output_tokens_total{format="messages"} 68',
      'tributary_cached_input_tokens_total{format="messages"} 10',
      "tributary_credit_charged_total 3",
      'tributary_first_output_seconds_bucket{le="0.025",format="messages"} 0',
      'tributary_first_output_seconds_bucket{le="0.05",format="messages"} 2',
      // (700.04 - 40) ms for the 33 tokens behind the first.
      'tributary_time_per_output_token_seconds_bucket{le="0.01",format="messages"} 0',
      'tributary_time_per_output_token_seconds_bucket{le="0.025",format="messages"} 2',
      'tributary_longest_silence_seconds_bucket{le="0.01",format="messages"} 0',
      'tributary_longest_silence_seconds_bucket{le="0.025",format="messages"} 2',
      'tributary_generation_seconds_bucket{le="0.5",format="messages"} 0',
      'tributary_generation_seconds_bucket{le="1",format="messages"} 2',
    ])
      expect(metrics.split("\n")).toContain(line);
  });

  it("is a refused admission where nothing was generated, and only where something might have been", async () => {
    const { telemetry } = open();
    const refused = { ...request, status: 402, failureCode: "budget_exceeded", generation: null };
    telemetry.requestEnded(refused);
    telemetry.requestEnded({ ...refused, generation });
    telemetry.requestEnded({ ...refused, route: "/v1/models" });
    const metrics = await telemetry.metricsText();
    expect(valueOf(metrics, 'tributary_admission_refusals_total{code="budget_exceeded"}')).toBe(1);
    expect(valueOf(metrics, 'tributary_failures_total{code="budget_exceeded"}')).toBe(3);
  });

  it("has no time of a token where it did not end well, or had one token", async () => {
    const { telemetry } = open();
    telemetry.requestEnded({ ...request, generation: { ...generation, outcome: "cancelled" } });
    telemetry.requestEnded({ ...request, generation: { ...generation, outputTokens: 1 } });
    const metrics = await telemetry.metricsText();
    const name = 'tributary_time_per_output_token_seconds_count{format="messages"}';
    expect(valueOf(metrics, name)).toBe(0);
  });

  it.each(Object.entries(failureKinds))("with %s is logged as its row says", (code, kind) => {
    const { telemetry, lines } = open({ level: "debug" });
    telemetry.requestEnded({ ...request, failureCode: code });
    telemetry.failed({ requestId: "req_1", code, cause: new Error("x") });
    expect(lines().map(({ level }) => level)).toEqual([kind.logLevel, kind.logLevel]);
  });

  it("is seen at debug only when it was a probe", () => {
    const { telemetry, lines } = open();
    telemetry.requestEnded({ ...request, method: "GET", route: "/healthz", generation: null });
    expect(lines()).toEqual([]);
    // A process that is not ready has a line of its own, once.
    telemetry.requestEnded({ ...request, route: "/readyz", status: 503, generation: null });
    expect(lines()).toEqual([]);
    telemetry.requestEnded({ ...request, route: "/readyz", status: 500, failureCode: "internal" });
    expect(lines()).toMatchObject([{ level: "error", route: "/readyz" }]);
  });
});

describe("a change of state", () => {
  it("is at warn what an operator has to know of: an engine that is away or dead, weights, the ledger", () => {
    const { telemetry, lines } = open({ level: "warn" });
    telemetry.lifecycle("deployment found", {});
    telemetry.lifecycle("deployment not found", { reason: "connect ECONNREFUSED 127.0.0.1:9" });
    telemetry.lifecycle("weights missing", {});
    telemetry.lifecycle("model not loaded", {});
    telemetry.lifecycle("model process ended", { code: null, signal: "SIGKILL" });
    telemetry.lifecycle("model loaded", {});
    telemetry.lifecycle("waiting for the ledger", {});
    telemetry.lifecycle("something new", {});
    telemetry.notReady({ reason: "The ledger cannot be written.", cause: new Error("x") });
    expect(lines().map(({ event, level, remedy }) => [event, level, remedy !== undefined])).toEqual(
      [
        ["deployment not found", "warn", true],
        ["weights missing", "error", true],
        ["model not loaded", "error", true],
        ["model process ended", "error", true],
        ["waiting for the ledger", "warn", true],
        ["not ready", "error", false],
      ],
    );
    expect(lines()[0]).toMatchObject({
      reason: "connect ECONNREFUSED 127.0.0.1:9",
      remedy: expect.stringContaining("TRIBUTARY_DEPLOYMENT_URL") as string,
    });
  });
});

describe("the process", () => {
  it("shows its running generations and memory, and what dashboards for Node.js ask for", async () => {
    const { log } = open();
    const telemetry = openTelemetry({ log, secrets: [], defaultMetrics: true });
    telemetry.watch({ runningGenerations: () => 3 });
    const metrics = await telemetry.metricsText();
    telemetry[Symbol.dispose]();
    const value = (name: string): number => valueOf(metrics, name);
    expect(value("tributary_running_generations")).toBe(3);
    expect(value("process_resident_memory_bytes")).toBeGreaterThan(1e7);
    expect(value("tributary_heap_used_bytes")).toBeGreaterThan(1e6);
    expect(value("process_cpu_seconds_total")).toBeGreaterThan(0);
    expect(metrics).toContain("# TYPE nodejs_gc_duration_seconds histogram\n");
    expect(metrics).not.toMatch(/^# TYPE \S+_total gauge$/m);
    for (const [, name = ""] of metrics.matchAll(/^# TYPE (\S+)/gm))
      expect(name).toMatch(/^(?:tributary|process|nodejs)_/);
    const startedSeconds = performance.timeOrigin / 1_000;
    expect(Math.abs(value("process_start_time_seconds") - startedSeconds)).toBeLessThan(60);
  });

  it("tells how late its timers ran, the same to everyone who asks", async () => {
    let nowMs = 0;
    const due: (() => void)[] = [];
    const seen: number[] = [];
    using lateness = watchLateness((seconds) => void seen.push(seconds), {
      monotonicMs: () => nowMs,
      timers: { set: (callback, delayMs) => due.push(callback) + delayMs, clear: () => undefined },
    });
    for (const passedMs of [20, 170, 19]) {
      nowMs += passedMs;
      due.shift()?.();
    }
    lateness[Symbol.dispose]();
    expect(seen).toEqual([0, 0.15, 0]);

    const { telemetry } = open();
    const ofLateness = (text: string): string =>
      text.split("# HELP ").find((part) => part.startsWith("tributary_event_loop")) ?? "";
    const first = ofLateness(await telemetry.metricsText());
    expect(first).toContain('tributary_event_loop_lateness_seconds_bucket{le="0.1"} 0');
    expect(ofLateness(await telemetry.metricsText())).toBe(first);
    telemetry[Symbol.dispose]();
  });
});

function valueOf(metrics: string, name: string): number {
  const line = metrics.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? Number.NaN : Number(line.split(" ").at(-1));
}

describe("a counter", () => {
  it("of every failure and outcome is there before its first event, so that an increase is seen", async () => {
    const { telemetry } = open();
    telemetry.beginRequests(knownRequests());
    const before = await telemetry.metricsText();
    for (const failureCode of Object.keys(failureKinds))
      telemetry.requestEnded({ ...request, failureCode });
    const endings = Object.keys(wireFormats).flatMap((format) =>
      Object.keys(outcomes).map((outcome) => ({ format, outcome })),
    );
    for (const ending of endings)
      for (const streamed of [false, true])
        telemetry.requestEnded({ ...request, generation: { ...generation, ...ending, streamed } });
    for (const [method, route, status] of knownRequests())
      telemetry.requestEnded({ ...request, method, route, status: Number(status) });
    for (const operation of ["settle", "renew", "expire"])
      telemetry.ledgerRetry({ operation, cause: null });
    for (const step of ["authorize", "admit", "settle"] as const) telemetry.ledgerAnswered(step, 1);
    telemetry.ledgerCommitted({ calls: 3, ms: 2 });
    telemetry.eventsGivenOut(eventTypes);
    const after = await telemetry.metricsText();
    telemetry[Symbol.dispose]();
    const series = (text: string): readonly string[] =>
      [...text.matchAll(/^(\S+(?:_total|_count|_bucket|_sum)(?:\{.*\})?) /gm)].map(
        ([, name = ""]) => name,
      );
    expect(series(after).filter((name) => !series(before).includes(name))).toEqual([]);
    for (const name of [
      'tributary_failures_total{code="deployment_failed"}',
      'tributary_generations_total{format="responses",streamed="true",outcome="lease-lost"}',
      'tributary_requests_total{method="POST",route="/v1/messages",status="529"}',
    ]) {
      expect(valueOf(before, name)).toBe(0);
      expect(valueOf(after, name)).toBeGreaterThan(0);
    }
  });

  it("has a name and a kind that Prometheus likes", async () => {
    const { telemetry } = open();
    telemetry.watch({ runningGenerations: () => 0 });
    const metrics = await telemetry.metricsText();
    telemetry[Symbol.dispose]();
    const heads = [...metrics.matchAll(/^# HELP (\S+) (.+)\n# TYPE (\S+) (\S+)\n/gm)];
    expect(heads.length).toBeGreaterThan(15);
    for (const [, name = "", help = "", typed, type] of heads) {
      expect(typed).toBe(name);
      expect(name).toMatch(/^tributary(?:_[a-z]+)+$/);
      expect(help).toMatch(/^[A-Z].+\.$/);
      expect(name.endsWith("_total"), name).toBe(type === "counter");
      // Base units; reserved ends and labels belong to histograms.
      expect(name).not.toMatch(/_(?:ms|milliseconds|kb|mb|bucket|count|sum|info)(?:_total)?$/);
      const labels = [...metrics.matchAll(new RegExp(`^${name}\\w*\\{(.*)\\}`, "gm"))];
      for (const [, text = ""] of labels)
        expect(text.includes('quantile="') || (type !== "histogram" && text.includes('le="'))).toBe(
          false,
        );
    }
  });
});

describe("lines that anyone can cause", () => {
  it("are written once a second for each outcome; the others are summed up, and seen at debug", async () => {
    const due: (() => void)[] = [];
    const timers = { set: (callback: () => void) => due.push(callback), clear: () => undefined };
    const written: string[] = [];
    const destination = { write: (text: string) => void written.push(text), flush: () => {} };
    const log = openLog({ level: "info", format: "json", terminal: false, destination });
    const telemetry = openTelemetry({ log, secrets: [], timers });
    const anonymous = { ...request, accountId: null, keyId: null, generation: null };
    const flood = (): void => {
      for (let index = 0; index < 1_000; index += 1) {
        telemetry.requestEnded({ ...anonymous, status: 401, failureCode: "authentication" });
        telemetry.requestEnded({
          ...anonymous,
          route: "",
          path: `/trib_a_b_c${String(index)}?`,
          status: 404,
          failureCode: "not_found",
        });
        telemetry.requestEnded({ ...anonymous, route: "/v1/models", failureCode: null });
        telemetry.requestEnded(request);
      }
    };
    const count = (pattern: RegExp): number => written.filter((line) => pattern.test(line)).length;
    flood();
    expect(count(/"status":401/)).toBe(1);
    expect(count(/"path":"\/trib_\(not shown\)\?"/)).toBe(1);
    expect(count(/"route":"\/v1\/models"/)).toBe(1);
    expect(count(/"accountId":"acct_1"/)).toBe(1_000);
    for (const end of due.splice(0)) end();
    flood();
    telemetry[Symbol.dispose]();
    expect(count(/"status":401/)).toBe(2);
    const sums = written
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ event }) => event === "requests not shown");
    expect(sums.map(({ count: rest, outcome }) => [outcome, rest])).toEqual([
      ["authentication", 999],
      ["not_found", 999],
      ["200", 999],
      ["authentication", 999],
      ["not_found", 999],
      ["200", 999],
    ]);
    const failures = 'tributary_failures_total{code="not_found"}';
    expect(valueOf(await telemetry.metricsText(), failures)).toBe(2_000);
  });
});

describe("a log", () => {
  const marker = "MARKERprompt";
  const secret = "sk-MARKERsecret";
  const key = "trib_abc_def_MARKERkey";

  function sayEverything(telemetry: ServiceTelemetry): void {
    let parseError: unknown = null;
    try {
      JSON.parse(`{"a": ${marker}}`);
    } catch (error) {
      parseError = error;
    }
    const causes = [
      parseError,
      marker,
      { marker },
      new Error(marker, { cause: new TypeError(marker) }),
      new AggregateError([new Error(marker)], marker),
    ];
    for (const cause of causes) {
      telemetry.failed({ requestId: "req_1", code: "internal", cause });
      telemetry.ledgerRetry({ operation: "settle", cause });
    }
    telemetry.deploymentRefused({
      requestId: "req_1",
      status: 400,
      type: `you said ${marker}`,
      code: `"${marker}"`,
      param: `${marker} is bad`,
      words: `${marker} ${secret}`,
    });
    telemetry.lifecycle("listening", { url: `http://x/?key=${secret}`, key });
    telemetry.settlementLate({ requestId: "req_1" });
    telemetry.leasesLost({ count: 2 });
    telemetry.reservationsExpired({ count: 1 });
  }

  it.each(["json", "pretty"] as const)(
    "in %s never shows a prompt, an answer or a secret",
    async (format) => {
      const { telemetry, text } = open({ format }, [secret]);
      sayEverything(telemetry);
      expect(text().split("\n").length).toBeGreaterThan(14);
      expect(text()).not.toContain("MARKER");
      expect(await telemetry.metricsText()).not.toContain("MARKER");
    },
  );

  it("shows at debug what the deployment said, but no secret even then", () => {
    const { telemetry, text } = open({ level: "debug" }, [secret]);
    sayEverything(telemetry);
    expect(text()).toContain(marker);
    expect(text()).not.toContain("MARKERsecret");
    expect(text()).not.toContain("MARKERkey");
  });

  it("names the cause: its class, its code, its places, and the system's own words", () => {
    const { telemetry, lines } = open();
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), {
      code: "ECONNREFUSED",
      syscall: "connect",
    });
    telemetry.failed({
      requestId: "req_1",
      code: "overloaded",
      cause: new TypeError("fetch failed", { cause: refused }),
    });
    expect(lines()).toMatchObject([
      {
        event: "failure",
        level: "warn",
        code: "overloaded",
        cause: {
          name: "TypeError",
          message: null,
          stack: expect.stringMatching(/^\s+at .*telemetry\.test\.ts/) as string,
          cause: { code: "ECONNREFUSED", message: "connect ECONNREFUSED 127.0.0.1:9" },
        },
      },
    ]);
  });

  it("is one readable line an event when pretty", () => {
    const { telemetry, text } = open({ format: "auto", terminal: true });
    telemetry.lifecycle("listening", {
      url: "http://127.0.0.1:8080",
      words: "a\u001B[2Jb",
      none: null,
    });
    const escape = String.fromCodePoint(27);
    expect(text().replaceAll(escape, "<esc>")).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} <esc>\[36mINFO <esc>\[39m listening {2}url=http:\/\/127\.0\.0\.1:8080 words="a\\u001b\[2Jb"\n$/,
    );
  });

  it("is JSON lines when nobody sees it, and silent at the level silent", () => {
    const automatic = open({ format: "auto" });
    automatic.telemetry.lifecycle("draining", {});
    expect(automatic.lines()).toMatchObject([{ event: "draining" }]);
    const silent = open({ level: "silent" });
    sayEverything(silent.telemetry);
    expect(silent.text()).toBe("");
  });
});
