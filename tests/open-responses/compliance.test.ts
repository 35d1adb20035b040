import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { messagesOf } from "../agents/tools.ts";
import { delta, textAnswer } from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "../service/start-service.ts";
import { complianceCases, type Earlier } from "./cases.ts";
import { readErrorBody, readEvents, readResponseObject } from "./required.ts";

let started: TestService | null = null;
beforeAll(async () => {
  started = await startService();
});
afterAll(() => started?.[Symbol.asyncDispose]());

function service(): TestService {
  if (started === null) throw new Error("the service has not started");
  return started;
}

const model = "service-llm";
const ask = (body: object): Promise<Response> =>
  service().post("/v1/responses", { model, ...body });

async function readAnswer(answer: Response, stream: boolean): Promise<Earlier> {
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  const type = stream ? "text/event-stream; charset=utf-8" : "application/json";
  expect(answer.headers.get("content-type")).toContain(type);
  const response = stream ? readEvents(text).last : readResponseObject(JSON.parse(text));
  expect(response).toMatchObject({ status: "completed", model, error: null, store: false });
  return response;
}

describe("the compliance suite of Open Responses", () => {
  it.each(complianceCases)("$id: $what", async ({ answers, outcome, output, requests, stream }) => {
    const before = service().deployment.requests.length;
    for (const answer of answers) service().deployment.answerNext(...answer);
    const earlier: Earlier[] = [];
    const refused = outcome === "passes" ? null : requests.at(-1);
    for (const request of requests) {
      if (request === refused) continue;
      earlier.push(await readAnswer(await ask({ ...request(earlier), stream }), stream));
    }
    if (outcome === "passes") {
      expect(earlier.at(-1)?.output.map(({ type }) => type)).toEqual(output);
    } else {
      const answer = await ask(refused?.(earlier) ?? {});
      expect(answer.status).toBe(400);
      expect(readErrorBody(await answer.json())).toMatchObject({
        type: "invalid_request_error",
        code: "unsupported_value",
        param: outcome.refusedFor,
      });
    }
    expect(service().deployment.requests.length - before).toBe(answers.length);
  });

  it.each([
    { id: "system-prompt", roles: ["system", "user"], last: "Hello." },
    { id: "multi-turn", roles: ["user", "assistant", "user"], last: "What is my boat called?" },
  ])("$id: the deployment hears every message", async ({ id, roles, last }) => {
    const known = complianceCases.find((one) => one.id === id);
    await (await ask(known?.requests[0]?.([]) ?? {})).text();
    const messages = messagesOf(service().deployment.requests.at(-1) ?? never());
    expect(messages.map(({ role }) => role)).toEqual(roles);
    expect(messages.at(-1)).toMatchObject({ content: last });
  });

  it("tool-calling-streaming: arguments come in pieces, between the item's begin and its end", async () => {
    const known = complianceCases.find((one) => one.id === "tool-calling-streaming");
    service().deployment.answerNext(...(known?.answers[0] ?? []));
    const stream = await (await ask({ ...known?.requests[0]?.([]), stream: true })).text();
    const types = readEvents(stream).events.map(({ type }) => type);
    expect([...new Set(types)]).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(types.filter((type) => type.endsWith(".delta")).length).toBeGreaterThan(1);
  });
});

describe("instead of what is refused", () => {
  it("the history is sent as items: a call and its output, too", async () => {
    const known = complianceCases.find((one) => one.id === "function-call-roundtrip");
    const question = known?.requests[0]?.([]) ?? {};
    service().deployment.answerNext(...(known?.answers[0] ?? []));
    const first = readResponseObject(await (await ask(question)).json());
    const [call] = first.output;
    if (call?.type !== "function_call") throw new Error("no call");
    expect(first.tool_choice).toEqual({ type: "function", name: "tide_at" });
    const input = [
      ...(question["input"] as readonly unknown[]),
      ...first.output,
      { type: "function_call_output", call_id: call.call_id, output: "2.1 m" },
    ];
    const second = await readAnswer(await ask({ input, tools: question["tools"] }), false);
    expect(second.output.map(({ type }) => type)).toEqual(["message"]);
    const heard = messagesOf(service().deployment.requests.at(-1) ?? never());
    expect(heard.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call_tide" });
  });

  it("a tool of the provider may be listed: the model does not see it, and answers", async () => {
    const tools = [{ type: "web_search", external_web_access: false }];
    const answer = await ask({ input: "What is known?", tools, tool_choice: "auto" });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ status: "completed", tools });
    expect(service().deployment.requests.at(-1)?.json).not.toHaveProperty("tools");
  });
});

describe("what the specification of Open Responses says besides", () => {
  it("a function of which only its name is told comes back with the rest as null", async () => {
    const answer = await ask({ input: "Hi", tools: [{ type: "function", name: "look" }] });
    expect(readResponseObject(await answer.json()).tools).toEqual([
      { type: "function", name: "look", description: null, parameters: null, strict: null },
    ]);
  });

  it.each([false, true])("reasoning, then text; as a stream: %s", async (stream) => {
    service().deployment.answerNext(...textAnswer("Yes.", { reasoning: "Let me think." }));
    const { output } = await readAnswer(await ask({ input: "Is it?", stream }), stream);
    expect(output).toMatchObject([
      { type: "reasoning", summary: [], content: [{ text: "Let me think." }] },
      { type: "message", content: [{ text: "Yes." }] },
    ]);
  });

  it("a summary of reasoning, and it sealed, when they are asked for", async () => {
    service().deployment.answerNext(...textAnswer("Yes.", { reasoning: "Let me think." }));
    const { output } = await readAnswer(
      await ask({
        input: "Is it?",
        stream: true,
        reasoning: { summary: "auto" },
        include: ["reasoning.encrypted_content"],
      }),
      true,
    );
    expect(output[0]).toMatchObject({
      type: "reasoning",
      summary: [{ type: "summary_text", text: "Let me think." }],
      encrypted_content: expect.stringMatching(/./u),
    });
  });

  it.each([false, true])(
    "an answer that was cut is incomplete, as is its last item; as a stream: %s",
    async (stream) => {
      service().deployment.answerNext(...textAnswer("It is", { finish: "length" }));
      const answer = await ask({ input: "Is it?", max_output_tokens: 16, stream });
      const text = await answer.text();
      const response = stream ? readEvents(text).last : readResponseObject(JSON.parse(text));
      expect(response).toMatchObject({
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
        max_output_tokens: 16,
        output: [{ status: "incomplete" }],
      });
    },
  );

  it("a failure after the stream has begun is an error event and then response.failed", async () => {
    service().deployment.answerNext(
      delta({ role: "assistant", content: "" }),
      delta({ content: "It " }),
      { type: "reset" },
    );
    const { events, last } = readEvents(
      await (await ask({ input: "Is it?", stream: true })).text(),
    );
    expect(events.slice(-2).map(({ type }) => type)).toEqual(["error", "response.failed"]);
    expect(last).toMatchObject({ status: "failed", error: { code: "server_error" } });
  });

  it.each([
    { what: "an input that is none", body: { input: 7 }, status: 400, param: "input" },
    { what: "a temperature of 9", body: { input: "Hi", temperature: 9 }, status: 400 },
    { what: "no key", body: { input: "Hi" }, status: 401, key: null },
    { what: "an unknown path", body: {}, status: 404, path: "/v1/responses/compact" },
  ])("an error has message, type, param and code: $what", async (wrong) => {
    const { body, key, param, path = "/v1/responses", status } = wrong;
    const answer = await service().post(path, body, key === null ? { key } : {});
    expect(answer.status).toBe(status);
    const error = readErrorBody(await answer.json());
    expect(error.type).toMatch(/^(?:invalid_request|authentication)_error$/u);
    if (param !== undefined) expect(error.param).toBe(param);
  });
});

function never(): never {
  throw new Error("the deployment heard nothing");
}
