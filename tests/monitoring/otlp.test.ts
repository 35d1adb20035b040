import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { firstKeyOf, type Program, startProgram } from "../cli/start-program.ts";
import {
  delta,
  finish,
  type ScriptedDeployment,
  startScriptedDeployment,
  statusAnswer,
} from "../doubles/scripted-deployment.ts";
import { formats, post } from "../service/start-service.ts";
import { type OtlpReceiver, type Received, startReceiver } from "./receiver.ts";

// What a service sends by OTLP, decoded by code that is not this project's.

const marker = "MARKER";
const traceId = "0af7651916cd43dd8448eb211c80319c";
const callersSpan = "b7ad6b7169203331";

interface Run extends AsyncDisposable {
  readonly program: Program;
  readonly deployment: ScriptedDeployment;
  ask(request: {
    readonly format: (typeof formats)[number];
    readonly stream?: boolean;
    readonly headers?: Readonly<Record<string, string>>;
    readonly key?: string;
  }): Promise<string>;
}

async function startRun(
  endpoint: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Run> {
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tributary-otlp-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  deployment.answerAlways(
    delta({ content: `${marker}answer` }),
    delta({ content: "!" }),
    finish("stop"),
  );
  const program = opened.use(
    startProgram(["serve", "--json"], folder, {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: folder,
      TRIBUTARY_DEPLOYMENT_URL: deployment.url,
      TRIBUTARY_LOG_LEVEL: "debug",
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      ...more,
    }),
  );
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)".*"listening"/);
  const key = await firstKeyOf(program);
  const owned = opened.move();
  return {
    program,
    deployment,
    async ask({ format, headers = {}, key: other = key, stream = false }) {
      const text = JSON.stringify({ ...format.body, stream }).replace("Hi", `${marker}prompt`);
      const answer = await post(url + format.path, text, { key: other, headers });
      await answer.text();
      return answer.headers.get("x-request-id") ?? "";
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function spanOf(all: readonly Received[], where: Readonly<Record<string, unknown>>): Received {
  const found = all.find((span) =>
    Object.entries(where).every(([key, value]) => span[key] === value),
  );
  if (found === undefined) throw new Error(`no span has ${JSON.stringify(where)}`);
  return found;
}

/** Ids are bytes, which this JSON has in base64. */
function hexOf(id: unknown): string {
  return Buffer.from(String(id), "base64").toString("hex");
}

test("traces, metrics and logs of the three formats arrive, with the names of the conventions and no text of anyone", async () => {
  await using receiver: OtlpReceiver = await startReceiver();
  await using run = await startRun(receiver.url, {
    OTEL_EXPORTER_OTLP_HEADERS: "x-tried=yes",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=trial",
  });
  const ids: string[] = [];
  for (const format of formats) {
    ids.push(await run.ask({ format, stream: true }));
    ids.push(await run.ask({ format }));
  }
  const [chat] = formats;
  const traced = await run.ask({
    format: chat,
    headers: {
      traceparent: `00-${traceId}-${callersSpan}-01`,
      tracestate: `vendor=${marker}`,
      baggage: `user=${marker}`,
    },
  });
  run.deployment.answerNext(...statusAnswer(500, { error: { message: marker } }));
  const failed = await run.ask({ format: chat });
  const refused = await run.ask({ format: chat, key: "none" });
  run.program.signal("SIGTERM");
  expect(await run.program.exited).toBe(0);

  const spans = receiver.spans();
  const server = (requestId: string): Received => {
    const found = spans.find((span) => span.attributes["tributary.request.id"] === requestId);
    if (found === undefined) throw new Error(`no span of ${requestId}`);
    return found;
  };
  const childrenOf = (parent: Received): readonly Received[] =>
    spans.filter(({ parentSpanId }) => parentSpanId === parent["spanId"]);
  for (const [index, requestId] of ids.entries()) {
    const format = formats[Math.floor(index / 2)];
    const span = server(requestId);
    expect(span).toMatchObject({
      name: `POST ${format?.path ?? ""}`,
      kind: "SPAN_KIND_SERVER",
      attributes: {
        "http.request.method": "POST",
        "http.route": format?.path,
        "http.response.status_code": 200,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "tributary",
        "gen_ai.request.model": "service-llm",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "tributary.format": format?.name,
        "tributary.streamed": index % 2 === 0,
        "tributary.outcome": "completed",
      },
    });
    expect(span["parentSpanId"]).toBeUndefined();
    const children = childrenOf(span);
    expect(children.map(({ name }) => String(name)).toSorted(compareText)).toEqual([
      "admit",
      "authorize",
      "chat scripted-model",
      "settle",
    ]);
    expect(new Set(children.map((one) => one["traceId"]))).toEqual(new Set([span["traceId"]]));
    const asked = spanOf(children, { name: "chat scripted-model" });
    expect(asked["kind"]).toBe("SPAN_KIND_CLIENT");
    expect(asked.attributes).toMatchObject({
      "gen_ai.request.model": "scripted-model",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.output_tokens": 7,
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(run.deployment.url).port),
    });
    const sent = run.deployment.requests[index]?.headers ?? {};
    expect(sent["traceparent"]).toBe(`00-${hexOf(span["traceId"])}-${hexOf(asked["spanId"])}-01`);
  }

  const continued = server(traced);
  expect(hexOf(continued["traceId"])).toBe(traceId);
  expect(hexOf(continued["parentSpanId"])).toBe(callersSpan);
  const handed = run.deployment.requests[ids.length]?.headers ?? {};
  expect(handed["traceparent"]).toMatch(
    new RegExp(`^00-${traceId}-(?!${callersSpan})[0-9a-f]{16}-01$`),
  );
  expect(handed).not.toHaveProperty("tracestate");
  expect(handed).not.toHaveProperty("baggage");

  expect(server(failed)).toMatchObject({
    status: { code: "STATUS_CODE_ERROR" },
    attributes: { "error.type": "deployment_failed", "tributary.outcome": "refused" },
  });
  const failedQuestion = spanOf(childrenOf(server(failed)), { name: "chat scripted-model" });
  expect(failedQuestion.attributes["error.type"]).toBe("deployment_failed");
  expect(server(refused).attributes).toMatchObject({
    "error.type": "authentication",
    "http.response.status_code": 401,
  });
  expect(server(refused)["status"]).not.toMatchObject({ code: "STATUS_CODE_ERROR" });

  const perFormat = (name: string): readonly unknown[] =>
    receiver
      .points(name)
      .filter(({ attributes }) => attributes["error.type"] === undefined)
      .map(
        ({ attributes, count }) =>
          `${JSON.stringify(attributes["tributary.format"])} ${String(count)}`,
      )
      .toSorted(compareText);
  const counts = ['"chat-completions" 3', '"messages" 2', '"responses" 2'];
  expect(perFormat("gen_ai.server.request.duration")).toEqual(counts);
  expect(perFormat("gen_ai.server.time_per_output_token")).toEqual(counts);
  const tokens = receiver
    .points("gen_ai.client.token.usage")
    .filter(({ attributes }) => attributes["gen_ai.token.type"] === "output");
  expect(tokens.reduce((sum, { sum: one }) => sum + Number(one), 0)).toBe(49);
  const own = receiver.points("tributary_generations_total");
  const completed = own.filter(({ attributes }) => attributes["outcome"] === "completed");
  expect(completed.reduce((sum, { asDouble }) => sum + Number(asDouble), 0)).toBe(7);
  expect(receiver.points("tributary_ledger_commit_seconds")).toHaveLength(1);

  const record = receiver
    .records()
    .find(({ attributes, body }) => attributes["requestId"] === traced && isText(body, "request"));
  expect(record).toMatchObject({
    severityText: "info",
    traceId: continued["traceId"],
    spanId: continued["spanId"],
    attributes: { status: 200, generation: { format: "chat-completions", outputTokens: 7 } },
  });
  expect(run.program.stdout()).toMatch(
    new RegExp(`"requestId":"${traced}".*"traceId":"${traceId}"`),
  );
  for (const resource of receiver.resources())
    expect(resource).toMatchObject({
      "service.name": "tributary",
      "deployment.environment.name": "trial",
    });
  expect(new Set(receiver.headers())).toEqual(new Set(["yes"]));
  expect(receiver.text()).not.toContain(marker);
});

function compareText(one: string, other: string): number {
  return one < other ? -1 : 1;
}

function isText(body: unknown, text: string): boolean {
  return (body as { readonly stringValue?: string } | undefined)?.stringValue === text;
}

test("a collector that is silent, or away, delays no request and no exit, and is said once", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  for (const where of [`http://127.0.0.1:${String(address.port)}`, "http://127.0.0.1:9"]) {
    await using run = await startRun(where, {
      OTEL_BSP_SCHEDULE_DELAY: "10",
      OTEL_BLRP_SCHEDULE_DELAY: "10",
      OTEL_EXPORTER_OTLP_TIMEOUT: "100",
    });
    for (let round = 0; round < 3; round += 1)
      for (const format of formats) await run.ask({ format });
    await run.program.waitFor(/"signal":"traces".*"telemetry not arriving"/);
    for (const format of formats) await run.ask({ format });
    run.program.signal("SIGTERM");
    expect(await run.program.exited).toBe(0);
    const said = run.program.stdout().match(/"telemetry not arriving"/g) ?? [];
    // Once for each signal.
    expect(said.length).toBeLessThanOrEqual(3);
  }
  silent.close();
});

test("a collector that never answers is not waited for at the end", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  // Its own time limits are far longer than this test may take.
  await using run = await startRun(`http://127.0.0.1:${String(address.port)}`, {
    OTEL_EXPORTER_OTLP_TIMEOUT: "600000",
    OTEL_BSP_EXPORT_TIMEOUT: "600000",
    OTEL_BLRP_EXPORT_TIMEOUT: "600000",
  });
  await run.ask({ format: formats[0] });
  run.program.signal("SIGTERM");
  expect(await run.program.exited).toBe(0);
  silent.close();
});
