import OpenAI, { BadRequestError } from "openai";
import { LengthFinishReasonError } from "openai/core/error";
import type {
  ChatCompletion,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from "openai/resources/chat/completions";
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
import { conversationOf, useService } from "./use-service.ts";
import {
  connectOpenAI,
  describeOpenAIError,
  listOpenAIModels,
  openaiErrorNames,
  openaiLacks,
} from "./openai.ts";

const model = "service-llm";
const tools: ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: weather.name,
      description: weather.description,
      parameters: weather.schema,
    },
  },
];

function paramsOf({ prompt, tools: offered }: Question) {
  const messages: ChatCompletionMessageParam[] = [{ role: "user", content: prompt }];
  return { model, messages, ...(offered === true ? { tools } : {}) };
}

/** Reasoning is a field that this SDK does not know but passes on. */
function reasoningOf(value: object | undefined): string {
  return value !== undefined && "reasoning_content" in value ? String(value.reasoning_content) : "";
}

// The helper adds `parsed` members, and keeps only the last piece of a field that it does not know.
const ofHelper = ["parsed", "parsed_arguments", "reasoning_content"];
const changing = ["id", "created", "_request_id"];

function seeCompletion(completion: ChatCompletion, reasoning: string): SeenAnswer {
  const choice = completion.choices[0];
  const calls = choice?.message.tool_calls ?? [];
  return {
    text: choice?.message.content ?? "",
    reasoning,
    calls: calls.map((call) => {
      if (call.type !== "function") throw new Error(`a call of type ${call.type}`);
      const { name, arguments: json } = call.function;
      return { id: call.id, name, input: JSON.parse(json) as unknown };
    }),
    finish: choice?.finish_reason,
    inputTokens: completion.usage?.prompt_tokens,
    outputTokens: completion.usage?.completion_tokens,
    vendor: without(
      {
        ...completion,
        choices: completion.choices.map((one) => ({
          ...one,
          message: { ...one.message, content: one.message.content ?? "" },
        })),
      },
      [...ofHelper, ...changing],
    ),
  };
}

const runnable = {
  type: "function" as const,
  function: {
    name: weather.name,
    description: weather.description,
    parameters: weather.schema,
    parse: parseCity,
    function: weather.run,
  },
};

async function loopByHand(client: OpenAI, prompt: string): Promise<string | null> {
  const { messages } = paramsOf({ prompt });
  for (;;) {
    const completion = await client.chat.completions.create({ model, messages, tools });
    const message = completion.choices[0]?.message;
    if (message?.tool_calls === undefined) return message?.content ?? null;
    // As applications do it: the message goes back as it came, reasoning included.
    messages.push(message);
    for (const call of message.tool_calls) {
      if (call.type !== "function") throw new Error(`a call of type ${call.type}`);
      const content = weather.run(parseCity(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
}

const kind: ClientKind = {
  name: "openai chat",
  format: "chat-completions",
  errorNames: openaiErrorNames,
  impossibleField: '"param":"n"',
  loopsReturnReasoning: {
    "by hand": true,
    runTools: false,
    "runTools, streamed": false,
  },
  finishes: { stop: "stop", length: "length", calls: "tool_calls" },
  lacks: openaiLacks,
  parsesCalls: false,
  describeError: describeOpenAIError,
  connect(connection: Connection) {
    const client = connectOpenAI(connection);
    const { completions } = client.chat;
    return {
      async whole(question) {
        const completion = await completions.create(paramsOf(question), {
          ...(question.signal === undefined ? {} : { signal: question.signal }),
        });
        return seeCompletion(completion, reasoningOf(completion.choices[0]?.message));
      },
      async streamed(question) {
        let reasoning = "";
        const stream = completions.stream(
          { ...paramsOf(question), stream_options: { include_usage: true } },
          { ...(question.signal === undefined ? {} : { signal: question.signal }) },
        );
        stream.on("content", (piece) => question.onText?.(piece));
        stream.on("chunk", (chunk) => void (reasoning += reasoningOf(chunk.choices[0]?.delta)));
        try {
          return seeCompletion(await stream.finalChatCompletion(), reasoning);
        } catch (error) {
          // An answer that was cut is an error to this helper; what it read is there all the same.
          if (!(error instanceof LengthFinishReasonError)) throw error;
          const snapshot = stream.currentChatCompletionSnapshot;
          if (snapshot === undefined) throw error;
          return seeCompletion(snapshot as ChatCompletion, reasoning);
        }
      },
      askForTheImpossible: () => completions.create({ ...paramsOf({ prompt: "Hello" }), n: 2 }),
      async converse(prompts) {
        const messages: ChatCompletionMessageParam[] = [];
        const texts: (string | null)[] = [];
        for (const content of prompts) {
          messages.push({ role: "user", content });
          const completion = await completions.create({ model, messages });
          const message = completion.choices[0]?.message;
          if (message === undefined) throw new Error("no message");
          messages.push(message);
          texts.push(message.content);
        }
        return texts;
      },
      listModels: () => listOpenAIModels(client),
      loops: {
        "by hand": (prompt) => loopByHand(client, prompt),
        runTools: (prompt) =>
          completions.runTools({ ...paramsOf({ prompt }), tools: [runnable] }).finalContent(),
        "runTools, streamed": (prompt) =>
          completions
            .runTools({ ...paramsOf({ prompt }), tools: [runnable], stream: true })
            .finalContent(),
      },
    };
  },
};

describeClient(kind);

describe("openai chat, alone", () => {
  const service = useService();
  const connect = (): OpenAI =>
    connectOpenAI({ url: service().url, key: service().key, maxRetries: 2 });

  it("lists the two aliases and echoes any model", async () => {
    const client = new OpenAI({ apiKey: "none", baseURL: `${service().url}/v1` });
    const ids: string[] = [];
    for await (const entry of client.models.list()) ids.push(entry.id);
    expect(ids).toEqual(["service-llm-legacy", "service-llm-compat"]);
    const entry = await client.models.retrieve("some/model:latest");
    expect(entry).toMatchObject({ id: "some/model:latest", object: "model" });
    expect(entry.created).toBeGreaterThan(1_500_000_000);
  });

  it("tells status, code, type and field of a refusal", async () => {
    const error = await errorOf(
      connect().chat.completions.create({ ...paramsOf({ prompt: "Hello" }), n: 2 }),
    );
    if (!(error instanceof BadRequestError)) throw error;
    expect(error).toMatchObject({
      status: 400,
      param: "n",
      code: "unsupported_value",
      type: "invalid_request_error",
    });
  });

  it("tells what is left and what would fit when credit is short", async () => {
    const { key } = await service().newKey("0.001");
    const client = connectOpenAI({ url: service().url, key, maxRetries: 2 });
    const error = await errorOf(
      client.chat.completions.create({ ...paramsOf({ prompt: "Hello" }), max_tokens: 60_000 }),
    );
    expect(error).toMatchObject({
      status: 402,
      code: "insufficient_quota",
      error: { balance: "0.001", held: "0", waiting_helps: false },
    });
    const { affordable_output_tokens: fits } = (error as { error: Record<string, unknown> }).error;
    expect(fits).toBeGreaterThan(100);
    const completion = await client.chat.completions.create({
      ...paramsOf({ prompt: "Hello" }),
      max_tokens: Number(fits),
    });
    expect(completion.choices[0]?.message.content).toBe("Hello from the deployment.");
  });

  it("finds no embeddings and no legacy completions", async () => {
    await expect(connect().embeddings.create({ model, input: "Hello" })).rejects.toMatchObject({
      status: 404,
    });
    await expect(connect().completions.create({ model, prompt: "Hello" })).rejects.toMatchObject({
      status: 404,
    });
  });

  it("streams without usage unless asked, with it when asked", async () => {
    for (const include_usage of [false, true]) {
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      const stream = await connect().chat.completions.create({
        ...paramsOf({ prompt: "Hello" }),
        stream: true,
        stream_options: { include_usage },
      });
      for await (const chunk of stream) chunks.push(chunk);
      const last = chunks.at(-1);
      expect(last?.choices).toHaveLength(include_usage ? 0 : 1);
      expect(last?.usage ?? null).toEqual(
        include_usage ? expect.objectContaining({ total_tokens: 19 }) : null,
      );
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
      for (const chunk of chunks) expect(chunk.model).toBe(model);
    }
  });

  it.each(["", null, undefined])(
    "takes an assistant's content %j beside calls",
    async (content) => {
      const messages: ChatCompletionMessageParam[] = [
        { role: "developer", content: "Be brief." },
        { role: "user", content: "Hello" },
        { role: "user", content: [{ type: "text", text: "Weather?" }] },
        {
          role: "assistant",
          ...(content === undefined ? {} : { content }),
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "sun" },
      ];
      const sent = service().deployment.requests.length;
      await connect().chat.completions.create({ model, messages, tools });
      expect(conversationOf(await service().deployment.request(sent))).toEqual([
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
        { role: "user", content: "Weather?" },
        expect.objectContaining({
          role: "assistant",
          tool_calls: messages[3]?.["tool_calls" as never],
        }),
        { role: "tool", tool_call_id: "call_1", content: "sun" },
      ]);
    },
  );

  it("keeps a custom tool custom, as a stream and as a body", async () => {
    const custom = {
      type: "custom" as const,
      custom: { name: "run", description: "Runs a line" },
    };
    const params = { ...paramsOf({ prompt: "List" }), tools: [custom] };
    const call = { id: "call_c", name: "run", arguments: '{"input":"ls -l \\"a b\\""}' };
    const expected = [
      { id: "call_c", type: "custom", custom: { name: "run", input: 'ls -l "a b"' } },
    ];
    service().deployment.answerNext(...textAnswer("", { toolCalls: [call], pieceCharacters: 3 }));
    const whole = await connect().chat.completions.create(params);
    expect(whole.choices[0]?.message.tool_calls).toEqual(expected);
    service().deployment.answerNext(...textAnswer("", { toolCalls: [call], pieceCharacters: 3 }));
    const stream = await connect().chat.completions.create({ ...params, stream: true });
    let input = "";
    for await (const chunk of stream) {
      const [piece] = chunk.choices[0]?.delta.tool_calls ?? [];
      // The SDK's type of a streamed call knows functions only.
      input += (piece as { custom?: { input?: string } } | undefined)?.custom?.input ?? "";
    }
    expect(input).toBe('ls -l "a b"');
    const sent = service().deployment.requests.length;
    await connect().chat.completions.create({
      ...params,
      messages: [
        ...params.messages,
        whole.choices[0]?.message as ChatCompletionMessageParam,
        { role: "tool", tool_call_id: "call_c", content: "total 0" },
      ],
    });
    const [, assistant] = conversationOf(await service().deployment.request(sent));
    const { input: returned } = JSON.parse(
      (assistant as { tool_calls: { function: { arguments: string } }[] }).tool_calls[0]?.function
        .arguments ?? "{}",
    ) as { input: string };
    expect(returned).toBe('ls -l "a b"');
  });
});
