import { type OpenAI, APIError } from "openai";
import { ResponsesToolRunner } from "openai/helpers/responses-tool-runner";
import type {
  FunctionTool,
  Response,
  ResponseInputItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { describe, expect, it } from "vitest";
import { delta, textAnswer } from "../doubles/scripted-deployment.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import { without } from "./accumulators.ts";
import {
  type ClientKind,
  type Connection,
  errorOf,
  parseCity,
  type Question,
  type SeenAnswer,
  weather,
} from "./client.ts";
import { describeClient } from "./client-laws.ts";
import { conversationOf, useService } from "./use-service.ts";
import {
  connectOpenAI,
  describeOpenAIError,
  listOpenAIModels,
  openaiErrorNames,
  openaiLacks,
} from "./openai.ts";

const model = "service-llm";
const thought = "The user greets, so greet.";
const tools: FunctionTool[] = [
  {
    type: "function",
    name: weather.name,
    description: weather.description,
    parameters: weather.schema,
    strict: false,
  },
];
const sealed = { store: false, include: ["reasoning.encrypted_content" as const] };

function paramsOf({ prompt, tools: offered }: Question) {
  return { model, input: prompt, ...sealed, ...(offered === true ? { tools } : {}) };
}

// A seal is another one every time, and the helper adds what it parsed.
const changing = ["id", "created_at", "completed_at", "_request_id", "encrypted_content"];
const ofHelper = ["parsed", "parsed_arguments", "output_parsed"];

function seeResponse(response: Response): SeenAnswer {
  const reasoning = response.output.flatMap((item) =>
    item.type === "reasoning" ? (item.content ?? []).map(({ text }) => text) : [],
  );
  return {
    text: response.output_text,
    reasoning: reasoning.join(""),
    calls: response.output.flatMap((item) =>
      item.type === "function_call"
        ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) as unknown }]
        : [],
    ),
    finish: response.incomplete_details?.reason ?? response.status,
    inputTokens: response.usage?.input_tokens,
    outputTokens: response.usage?.output_tokens,
    vendor: without(response, [...changing, ...ofHelper]),
  };
}

async function loopByHand(
  ask: (input: ResponseInputItem[]) => Promise<Response>,
  prompt: string,
): Promise<string> {
  const input: ResponseInputItem[] = [{ role: "user", content: prompt }];
  for (;;) {
    const response = await ask(input);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return response.output_text;
    // The vendor's documentation passes the output back as it came; its types differ in items that never come here.
    input.push(...(response.output as ResponseInputItem[]));
    for (const call of calls) {
      const output = weather.run(parseCity(call.arguments));
      input.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
}

function runnerOf(): ResponsesToolRunner {
  const [tool] = tools;
  if (tool === undefined) throw new Error("no tool");
  const execute = (input: Record<string, unknown>): string =>
    weather.run(parseCity(JSON.stringify(input)));
  return new ResponsesToolRunner({ functions: [{ tool, execute }] });
}

const kind: ClientKind = {
  name: "openai responses",
  format: "responses",
  errorNames: openaiErrorNames,
  impossibleField: '"param":"previous_response_id"',
  loopsReturnReasoning: {
    "by hand": true,
    "by hand, streamed": true,
    "its tool runner": true,
    "its tool runner, streamed": true,
  },
  finishes: { stop: "completed", length: "max_output_tokens", calls: "completed" },
  lacks: openaiLacks,
  parsesCalls: false,
  describeError: describeOpenAIError,
  connect(connection: Connection) {
    const client = connectOpenAI(connection);
    const { responses } = client;
    const signalOf = ({ signal }: Question): { signal?: AbortSignal } =>
      signal === undefined ? {} : { signal };
    return {
      whole: async (question) =>
        seeResponse(await responses.create(paramsOf(question), signalOf(question))),
      async streamed(question) {
        const stream = responses.stream(paramsOf(question), signalOf(question));
        stream.on("response.output_text.delta", (event) => question.onText?.(event.delta));
        return seeResponse(await stream.finalResponse());
      },
      askForTheImpossible: () =>
        responses.create({ ...paramsOf({ prompt: "Hello" }), previous_response_id: "resp_1" }),
      async converse(prompts) {
        const input: ResponseInputItem[] = [];
        const texts: string[] = [];
        for (const content of prompts) {
          input.push({ role: "user", content });
          const response = await responses.create({ model, input, ...sealed });
          input.push(...(response.output as ResponseInputItem[]));
          texts.push(response.output_text);
        }
        return texts;
      },
      listModels: () => listOpenAIModels(client),
      loops: {
        "by hand": (prompt) =>
          loopByHand((input) => responses.create({ model, input, tools, ...sealed }), prompt),
        "by hand, streamed": (prompt) =>
          loopByHand(
            (input) => responses.stream({ model, input, tools, ...sealed }).finalResponse(),
            prompt,
          ),
        "its tool runner": async (prompt) =>
          (await runnerOf().run(client, { model, input: prompt, ...sealed })).output_text,
        "its tool runner, streamed": async (prompt) => {
          const run = runnerOf().run(
            client,
            { model, input: prompt, ...sealed },
            { stream: true, eager: true },
          );
          return (await run).output_text;
        },
      },
    };
  },
};

describeClient(kind);

describe("openai responses, alone", () => {
  const service = useService();
  const connect = (different: Partial<Connection> = {}): OpenAI =>
    connectOpenAI({ url: service().url, key: service().key, maxRetries: 0, ...different });

  async function eventsOf(
    params: OpenAI.Responses.ResponseCreateParamsStreaming,
  ): Promise<readonly ResponseStreamEvent[]> {
    const events: ResponseStreamEvent[] = [];
    for await (const event of await connect().responses.create(params)) events.push(event);
    return events;
  }

  it("numbers its events without gaps and ends with the whole answer", async () => {
    service().deployment.answerNext(...textAnswer("Hello you.", { pieceCharacters: 3 }));
    const events = await eventsOf({ ...paramsOf({ prompt: "Hello" }), stream: true });
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      ...Array.from({ length: 4 }, () => "response.output_text.delta"),
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const last = events.at(-1);
    if (last?.type !== "response.completed") throw new Error("no terminal");
    expect(last.response).toMatchObject({ status: "completed", store: false, error: null });
    expect(last.response.completed_at).toBeGreaterThanOrEqual(last.response.created_at);
    const done = events.find((event) => event.type === "response.output_item.done");
    expect(done?.item).toEqual(last.response.output[0]);
  });

  it("shows reasoning as a summary when one is asked for", async () => {
    service().deployment.answerNext(...textAnswer("Hi.", { reasoning: thought }));
    const stream = connect().responses.stream({
      ...paramsOf({ prompt: "Hello" }),
      reasoning: { summary: "auto" },
    });
    let heard = "";
    stream.on("response.reasoning_summary_text.delta", ({ delta: piece }) => (heard += piece));
    const response = await stream.finalResponse();
    expect(heard).toBe(thought);
    expect(response.output[0]).toMatchObject({
      type: "reasoning",
      summary: [{ type: "summary_text", text: thought }],
    });
  });

  it("gives reasoning back only to the account it was made for", async () => {
    service().deployment.answerNext(...textAnswer("Hi.", { reasoning: thought }));
    const first = await connect().responses.create(paramsOf({ prompt: "Hello" }));
    const other = await service().newKey("10");
    for (const [key, expected] of [
      [service().key, thought],
      [other.key, undefined],
    ] as const) {
      const sent = service().deployment.requests.length;
      const input = [
        { role: "user" as const, content: "Hello" },
        ...(first.output as ResponseInputItem[]),
        { role: "user" as const, content: "And now?" },
      ];
      await connect({ key }).responses.create({ model, input, ...sealed });
      const [, assistant] = conversationOf(await service().deployment.request(sent));
      expect(assistant).toEqual({
        role: "assistant",
        content: "Hi.",
        ...(expected === undefined ? {} : { reasoning_content: expected }),
      });
    }
  });

  it("seals nothing unless asked", async () => {
    service().deployment.answerNext(...textAnswer("Hi.", { reasoning: thought }));
    const response = await connect().responses.create({ model, input: "Hello" });
    expect(response.output[0]).toMatchObject({ type: "reasoning" });
    expect(JSON.stringify(response)).not.toContain('"encrypted_content":"');
  });

  it("reports a failure in both ways that clients know", async () => {
    service().deployment.answerNext(delta({ content: "half" }));
    const stream = await connect().responses.create({
      ...paramsOf({ prompt: "Hello" }),
      stream: true,
    });
    const types: string[] = [];
    const error = await errorOf(
      (async () => {
        for await (const event of stream) types.push(event.type);
      })(),
    );
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: "deployment_failed" });
    expect(types).toContain("response.output_text.delta");
    expect(types).not.toContain("response.completed");
  });

  it("says an error beside its type and as an object, which is all that the Python package throws on", async () => {
    service().deployment.answerNext(delta({ content: "half" }));
    const body = { model, input: "Hello", stream: true };
    const frames = framesOf(readFrames(await (await service().post("/v1/responses", body)).text()));
    const told: unknown = JSON.parse(frames.find(({ event }) => event === "error")?.data ?? "{}");
    const fields = {
      code: "deployment_failed",
      message: expect.stringContaining("The deployment ended its answer") as unknown,
      param: null,
    };
    expect(told).toMatchObject({
      type: "error",
      ...fields,
      error: { ...fields, type: "server_error", request_id: expect.stringMatching(/^req_/) },
    });
  });

  it("tells field and way out of what is stored elsewhere", async () => {
    const input = [{ type: "item_reference" as const, id: "rs_1" }];
    const error = await errorOf(connect().responses.create({ model, input }));
    expect(error).toMatchObject({ status: 400, param: expect.stringContaining("input[0]") });
    expect(String(error)).toContain("store");
  });

  it("takes an answer that ran out of context for one, with the vendor's code", async () => {
    service().deployment.answerNext(
      { type: "headers", status: 400, headers: { "content-type": "application/json" } },
      {
        type: "write",
        bytes: JSON.stringify({
          error: {
            message:
              "You passed 5000 input tokens and requested 100 output tokens. However, the model's context length is only 4096 tokens.",
            type: "BadRequestError",
            code: 400,
          },
        }),
      },
    );
    const error = await errorOf(connect().responses.create(paramsOf({ prompt: "Hello" })));
    expect(error).toMatchObject({ status: 400, code: "context_length_exceeded" });
  });
});
