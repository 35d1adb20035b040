import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  // Also behind a test of the operators' listener: these answers are those of callers, whatever their paths.
  inspectWith(openAnswerCheck);
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

const ask = (
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${service.key}`, ...headers },
    ...(method === "POST" ? { body: "{}" } : {}),
  });

describe("what is not offered", () => {
  it.each([
    ["POST", "/v1/completions"],
    ["POST", "/v1/embeddings"],
    ["POST", "/v1/files"],
    ["GET", "/v1/files"],
    ["POST", "/v1/batches"],
    ["POST", "/v1/images/generations"],
    ["POST", "/v1/audio/speech"],
    ["POST", "/v1/audio/transcriptions"],
    ["POST", "/v1/moderations"],
    ["POST", "/v1/assistants"],
    ["POST", "/v1/threads"],
    ["POST", "/v1/vector_stores"],
    ["POST", "/v1/fine_tuning/jobs"],
    ["POST", "/v1/uploads"],
    ["POST", "/v1/videos"],
    ["GET", "/v1/responses/resp_1"],
    ["DELETE", "/v1/responses/resp_1"],
    ["POST", "/v1/responses/compact"],
    ["POST", "/v1/messages/batches"],
    ["GET", "/v1/messages/batches"],
    ["GET", "/v1/chat/completions/x"],
    ["POST", "/v1/conversations"],
    ["GET", "/anything"],
  ])("%s %s is 404, costs nothing and reaches nothing", async (method, path) => {
    const before = await service.credit();
    const sent = service.deployment.requests.length;
    const response = await ask(method, path);
    expect(response.status).toBe(404);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.get("x-request-id")).toMatch(/^req_\w{24}$/);
    const body = (await response.json()) as Record<string, Record<string, unknown>>;
    if (path.startsWith("/v1/messages")) {
      expect(body["error"]?.["type"]).toBe("not_found_error");
      expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
    } else {
      expect(body["error"]).toMatchObject({ type: "invalid_request_error", code: "not_found" });
    }
    expect(await service.credit()).toEqual(before);
    expect(service.deployment.requests.length).toBe(sent);
  });

  it("tells a client with /v1 twice which base address it wants", async () => {
    const response = await ask("POST", "/v1/v1/messages");
    expect(response.status).toBe(404);
    expect(await response.text()).toMatch(/base address/);
  });

  it("is told by method too: 405 with allow", async () => {
    const get = await ask("GET", "/v1/chat/completions");
    expect(get.status).toBe(405);
    expect(get.headers.get("allow")).toBe("POST");
    const post = await ask("POST", "/v1/models");
    expect(post.status).toBe(405);
    expect(post.headers.get("allow")).toBe("GET, HEAD");
  });

  it.each(formats)("are the three json_schema fields in $name", async ({ path, body }) => {
    const format = { type: "json_schema", name: "x", schema: {}, json_schema: { name: "x" } };
    for (const [field, value] of [
      ["response_format", format],
      ["output_format", format],
      ["text", { format }],
    ] as const) {
      const sent = service.deployment.requests.length;
      const response = await service.post(path, { ...body, [field]: value });
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: Record<string, unknown> };
      if (path === "/v1/messages") expect(error["type"]).toBe("invalid_request_error");
      else expect(error).toMatchObject({ code: "unsupported_value" });
      expect(service.deployment.requests.length).toBe(sent);
    }
  });

  it("does not include output_config.format, which Messages ignores whole", async () => {
    const body = { ...formats[2].body, output_config: { format: { type: "json_schema" } } };
    expect((await service.post("/v1/messages", body)).status).toBe(200);
  });
});

describe("what is public", () => {
  it("lists exactly the two aliases in both envelopes", async () => {
    const openai = await fetch(`${service.url}/v1/models?limit=1000`);
    expect(await openai.json()).toMatchObject({
      object: "list",
      data: [
        { id: "service-llm-legacy", object: "model" },
        { id: "service-llm-compat", object: "model" },
      ],
    });
    const messages = await fetch(`${service.url}/v1/models`, {
      headers: { "anthropic-version": "2023-06-01" },
    });
    expect(await messages.json()).toMatchObject({
      data: [
        { type: "model", id: "service-llm-legacy" },
        { type: "model", id: "service-llm-compat" },
      ],
      has_more: false,
      first_id: "service-llm-legacy",
      last_id: "service-llm-compat",
    });
  });

  it("echoes any model id up to 256 characters", async () => {
    const found = await fetch(`${service.url}/v1/models/${encodeURIComponent("org/model é")}`);
    expect(await found.json()).toMatchObject({ id: "org/model é", object: "model" });
    expect((await fetch(`${service.url}/v1/models/${"m".repeat(256)}`)).status).toBe(200);
    expect((await fetch(`${service.url}/v1/models/${"m".repeat(257)}`)).status).toBe(404);
    expect((await fetch(`${service.url}/v1/models/%E0%A4%A`)).status).toBe(404);
  });

  it("shows a browser the page for callers, and nothing of the operators' one", async () => {
    // Not by fetch, whose answers are held against what programs get.
    const get = async (path: string): Promise<IncomingMessage> => {
      const asked = request(service.url + path, { headers: { accept: "text/html,*/*" } });
      asked.end();
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      return answer;
    };
    const page = await get("/");
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    const html = await text(page);
    // Where nothing is built the page says so.
    if (page.statusCode === 503) expect(html).toContain("npm run build:console");
    else {
      const [, script = ""] = /src="(\/console\/callers-[^"]+\.js)"/.exec(html) ?? [];
      const code = await get(script);
      expect([code.statusCode, code.headers["cache-control"]]).toEqual([
        200,
        expect.stringContaining("immutable"),
      ]);
      expect(await text(code)).not.toContain("/api/v1/operators");
    }
    expect((await get("/console/operators.js")).statusCode).not.toBe(200);
    expect((await get("/api/v1/accounts")).statusCode).toBe(404);
  });

  it("answers probes", async () => {
    for (const [method, path] of [
      ["GET", "/healthz"],
      ["GET", "/readyz"],
      ["GET", "/metrics"],
      ["GET", "/"],
      ["HEAD", "/"],
      ["HEAD", "/api/hello"],
    ] as const)
      expect((await fetch(service.url + path, { method })).status).toBe(200);
  });
});
