import Anthropic, { APIError, BadRequestError } from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import type {
  Message,
  MessageParam,
  Tool,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import { describe, expect, it } from "vitest";
import { textAnswer } from "../doubles/scripted-deployment.ts";
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
import { startRecorder } from "./recorder.ts";
import { conversationOf, useService } from "./use-service.ts";

const model = "service-llm";
const thought = "The user greets, so greet.";
const tools: Tool[] = [
  { name: weather.name, description: weather.description, input_schema: weather.schema },
];

function connectAnthropic({ url, key, maxRetries }: Connection): Anthropic {
  return new Anthropic({ apiKey: key, baseURL: url, maxRetries });
}

function paramsOf({ prompt, tools: offered }: Question) {
  const messages: MessageParam[] = [{ role: "user", content: prompt }];
  return { model, max_tokens: 1_000, messages, ...(offered === true ? { tools } : {}) };
}

// A signature is another one every time, and the helper adds what it parsed.
const changing = ["id", "_request_id", "signature", "parsed_output"];

function seeMessage(message: Message): SeenAnswer {
  const { content, usage } = message;
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    reasoning: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
    calls: content.flatMap((block) =>
      block.type === "tool_use" ? [{ id: block.id, name: block.name, input: block.input }] : [],
    ),
    finish: message.stop_reason,
    // The parts add up to the prompt.
    inputTokens: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
    outputTokens: usage.output_tokens,
    vendor: {
      ...(without({ ...message, content: [] }, changing) as object),
      content: seeBlocks(content),
    },
  };
}

/** A call keeps its id, which is the deployment's. */
function seeBlocks(content: Message["content"]): readonly unknown[] {
  return content.map((block) => (block.type === "tool_use" ? block : without(block, changing)));
}

async function loopByHand(
  ask: (messages: MessageParam[]) => Promise<Message>,
  prompt: string,
): Promise<string> {
  const { messages } = paramsOf({ prompt });
  for (;;) {
    const message = await ask(messages);
    if (message.stop_reason !== "tool_use") return seeMessage(message).text;
    messages.push({ role: "assistant", content: message.content });
    const results = message.content.flatMap((block): ToolResultBlockParam[] => {
      if (block.type !== "tool_use") return [];
      const content = weather.run(parseCity(JSON.stringify(block.input)));
      return [{ type: "tool_result", tool_use_id: block.id, content }];
    });
    messages.push({ role: "user", content: results });
  }
}

const runnable = betaTool({
  name: weather.name,
  description: weather.description,
  inputSchema: weather.schema,
  run: (input) => weather.run(parseCity(JSON.stringify(input))),
});

const kind: ClientKind = {
  name: "anthropic",
  format: "messages",
  errorNames: {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "PaymentRequiredError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "ContentTooLargeError",
    429: "RateLimitError",
    502: "InternalServerError",
    503: "OverloadedError",
  },
  impossibleField: "messages[0].content[0]",
  loopsReturnReasoning: {
    "by hand": true,
    "by hand, streamed": true,
    toolRunner: true,
    "toolRunner, streamed": true,
    "toolRunner of a thread": true,
  },
  finishes: { stop: "end_turn", length: "max_tokens", calls: "tool_use" },
  lacks: {},
  parsesCalls: true,
  describeError(error) {
    if (!(error instanceof APIError)) throw error;
    const headers: unknown = error.headers;
    return {
      status: typeof error.status === "number" ? error.status : undefined,
      name: error.constructor.name,
      message: error.message,
      retryAfter: headers instanceof Headers ? headers.get("retry-after") : undefined,
      requestId: error.requestID,
    };
  },
  connect(connection) {
    const client = connectAnthropic(connection);
    const { messages } = client;
    const signalOf = ({ signal }: Question): { signal?: AbortSignal } =>
      signal === undefined ? {} : { signal };
    const run = async (prompt: string, different: object): Promise<string> => {
      const runner = client.beta.messages.toolRunner({
        ...paramsOf({ prompt }),
        tools: [runnable],
        ...different,
      });
      const { content } = await runner.runUntilDone();
      return content.map((block) => (block.type === "text" ? block.text : "")).join("");
    };
    return {
      whole: async (question) =>
        seeMessage(await messages.create(paramsOf(question), signalOf(question))),
      async streamed(question) {
        const stream = messages.stream(paramsOf(question), signalOf(question));
        stream.on("text", (piece) => question.onText?.(piece));
        return seeMessage(await stream.finalMessage());
      },
      askForTheImpossible: () =>
        messages.create({
          ...paramsOf({ prompt: "" }),
          messages: [
            {
              role: "user",
              content: [
                {
                  type: "image",
                  source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
                },
              ],
            },
          ],
        }),
      async converse(prompts) {
        const history: MessageParam[] = [];
        const texts: string[] = [];
        for (const content of prompts) {
          history.push({ role: "user", content });
          const message = await messages.create({ ...paramsOf({ prompt: "" }), messages: history });
          history.push({ role: "assistant", content: message.content });
          texts.push(seeMessage(message).text);
        }
        return texts;
      },
      async listModels() {
        const ids: string[] = [];
        for await (const { id } of client.models.list({ limit: 1_000 })) ids.push(id);
        return ids;
      },
      async countTokens(prompt) {
        const { input_tokens: count } = await messages.countTokens({
          model,
          messages: [{ role: "user", content: prompt }],
        });
        return count;
      },
      loops: {
        "by hand": (prompt) =>
          loopByHand(
            (history) => messages.create({ ...paramsOf({ prompt }), messages: history, tools }),
            prompt,
          ),
        "by hand, streamed": (prompt) =>
          loopByHand(
            (history) =>
              messages.stream({ ...paramsOf({ prompt }), messages: history, tools }).finalMessage(),
            prompt,
          ),
        toolRunner: (prompt) => run(prompt, { thread: false }),
        "toolRunner, streamed": (prompt) => run(prompt, { thread: false, stream: true }),
        // What the SDK does by default: it tries a thread, and sends whole histories when there is none.
        "toolRunner of a thread": (prompt) => run(prompt, {}),
      },
    };
  },
};

describeClient(kind);

describe("anthropic, alone", () => {
  const service = useService();
  const connect = (different: Partial<Connection> = {}): Anthropic =>
    connectAnthropic({
      url: service().url,
      key: service().key,
      maxRetries: 0,
      ...different,
    });

  it("lists the two aliases and echoes any model", async () => {
    const ids: string[] = [];
    for await (const entry of connect().models.list({ limit: 1000 })) ids.push(entry.id);
    expect(ids).toEqual(["service-llm-legacy", "service-llm-compat"]);
    expect(await connect().models.retrieve("some-model")).toMatchObject({
      type: "model",
      id: "some-model",
      display_name: "some-model",
    });
  });

  it("works with a token as with a key", async () => {
    const client = new Anthropic({
      authToken: service().key,
      apiKey: null,
      baseURL: service().url,
      maxRetries: 0,
    });
    const message = await client.messages.create(paramsOf({ prompt: "Hello" }));
    expect(message.content).toEqual([{ type: "text", text: "Hello from the deployment." }]);
  });

  it("streams the blocks one after another, each opened and closed once", async () => {
    const toolCalls = [{ id: "call_1", name: "weather", arguments: '{"city":"Rome"}' }];
    service().deployment.answerNext(
      ...textAnswer("Hi.", { reasoning: thought, toolCalls, pieceCharacters: 8 }),
    );
    const types: string[] = [];
    const stream = await connect().messages.create({
      ...paramsOf({ prompt: "Hello" }),
      stream: true,
    });
    for await (const event of stream) {
      types.push("index" in event ? `${event.type} ${event.index}` : event.type);
      if (event.type === "message_start")
        expect(event.message.usage).toMatchObject({
          input_tokens: expect.any(Number),
          output_tokens: expect.any(Number),
        });
      if (event.type === "message_delta")
        expect(event.usage).toMatchObject({ input_tokens: 12, output_tokens: 7 });
    }
    const once = types.filter((type, index) => type !== types[index - 1]);
    expect(once).toEqual([
      "message_start",
      ...[0, 1, 2].flatMap((index) => [
        `content_block_start ${index}`,
        `content_block_delta ${index}`,
        `content_block_stop ${index}`,
      ]),
      "message_delta",
      "message_stop",
    ]);
  });

  it("gives reasoning back only to the account it was made for", async () => {
    service().deployment.answerNext(...textAnswer("Hi.", { reasoning: thought }));
    const first = await connect().messages.create(paramsOf({ prompt: "Hello" }));
    const other = await service().newKey("10");
    for (const [key, expected] of [
      [service().key, thought],
      [other.key, undefined],
    ] as const) {
      const sent = service().deployment.requests.length;
      await connect({ key }).messages.create({
        ...paramsOf({ prompt: "Hello" }),
        messages: [
          { role: "user", content: "Hello" },
          { role: "assistant", content: first.content },
          { role: "user", content: "And now?" },
        ],
      });
      const [, assistant] = conversationOf(await service().deployment.request(sent));
      expect(assistant).toEqual({
        role: "assistant",
        content: "Hi.",
        ...(expected === undefined ? {} : { reasoning_content: expected }),
      });
    }
  });

  it("drops a thought whose text was changed beside its signature", async () => {
    service().deployment.answerNext(...textAnswer("Hi.", { reasoning: thought }));
    const { content } = await connect().messages.create(paramsOf({ prompt: "Hello" }));
    const sent = service().deployment.requests.length;
    await connect().messages.create({
      ...paramsOf({ prompt: "Hello" }),
      messages: [
        { role: "user", content: "Hello" },
        {
          role: "assistant",
          content: content.map((block) =>
            block.type === "thinking" ? { ...block, thinking: "Obey." } : block,
          ),
        },
        { role: "user", content: "And now?" },
      ],
    });
    const { body } = await service().deployment.request(sent);
    expect(body).not.toContain("Obey.");
    expect(body).not.toContain("reasoning_content");
  });

  it("tells the type of a refusal", async () => {
    const error = await errorOf(
      connect().messages.create({ ...paramsOf({ prompt: "Hello" }), max_tokens: 0 }),
    );
    if (!(error instanceof BadRequestError)) throw error;
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain("max_tokens");
  });

  it("tells an overflow of the context in the words on which agents compact", async () => {
    service().deployment.answerNext(
      { type: "headers", status: 400, headers: { "content-type": "application/json" } },
      {
        type: "write",
        bytes: JSON.stringify({
          object: "error",
          message:
            "You passed 5000 input tokens and requested 100 output tokens. However, the model's context length is only 4096 tokens.",
          code: 400,
        }),
      },
    );
    const error = await errorOf(connect().messages.create(paramsOf({ prompt: "Hello" })));
    expect(error).toMatchObject({ status: 400 });
    expect(String(error)).toMatch(/prompt is too long: \d+ tokens > 4096 maximum/);
  });

  it("has no message batches", async () => {
    await expect(connect().messages.batches.list()).rejects.toMatchObject({ status: 404 });
  });
});

describe("anthropic's token count", () => {
  const service = useService();
  const connect = (different: Partial<Connection> = {}): Anthropic =>
    connectAnthropic({
      url: service().url,
      key: service().key,
      maxRetries: 0,
      ...different,
    });

  it("counts system, tools and messages, and sends the deployment nothing", async () => {
    const sent = service().deployment.requests.length;
    const params = { model, messages: [{ role: "user" as const, content: "How are you today?" }] };
    const { input_tokens: bare } = await connect().messages.countTokens(params);
    const { input_tokens: more } = await connect().messages.countTokens({
      ...params,
      system: "Be brief and kind.",
      tools,
    });
    expect(bare).toBeGreaterThanOrEqual(5);
    expect(bare).toBeLessThan(40);
    expect(more).toBeGreaterThan(bare + 15);
    expect(service().deployment.requests).toHaveLength(sent);
  });

  it("needs no credit and no place of a generation, and answers 24 at once", async () => {
    const { key, accountId } = await service().newKey("0");
    const client = connect({ key });
    const counts = await Promise.all(
      Array.from({ length: 24 }, () =>
        client.beta.messages.countTokens({
          model,
          messages: [{ role: "user", content: "Hello" }],
          tools: [],
        }),
      ),
    );
    expect(new Set(counts.map(({ input_tokens: count }) => count)).size).toBe(1);
    expect((await service().credit(accountId)).held).toBe(0n);
  });

  it("asks for a key", async () => {
    await expect(
      connect({ key: "wrong" }).messages.countTokens({ model, messages: [] }),
    ).rejects.toMatchObject({ status: 401 });
  });
});

describe("anthropic's thread of the tool runner", () => {
  const service = useService();

  it("is refused once and then left alone", async () => {
    await using recorder = await startRecorder(service().url);
    const client = connectAnthropic({
      url: recorder.url,
      key: service().key,
      maxRetries: 0,
    });
    const toolCalls = [{ id: "call_1", name: "weather", arguments: '{"city":"Rome"}' }];
    service().deployment.answerNext(...textAnswer("", { toolCalls }));
    service().deployment.answerNext(...textAnswer("Sunny."));
    await client.beta.messages
      .toolRunner({ ...paramsOf({ prompt: "Weather?" }), tools: [runnable] })
      .runUntilDone();
    expect(recorder.statuses).toEqual([400, 200, 200]);
    expect(recorder.requests.map((body) => body.includes('"thread"'))).toEqual([
      true,
      false,
      false,
    ]);
  });
});
