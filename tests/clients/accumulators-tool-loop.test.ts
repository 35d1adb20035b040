import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, streamText, tool, type LanguageModel } from "ai";
import OpenAI from "openai";
import type { ResponseInput } from "openai/resources/responses/responses";
import { describe, expect, it } from "vitest";
import type { Conversation, Turn } from "../../src/conversation/conversation.ts";
import { failureFromUnknown } from "../../src/failure.ts";
import { buildErrorAnswer } from "../../src/formats/error-answer.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { testReasoning } from "../cases/context.ts";
import type { JsonRecord } from "../cases/files.ts";
import { bodyOf, streamOf, type Step } from "../cases/generations.ts";
import { noRetries, serveAnswers, type FakeServer } from "./accumulators.ts";

const usage = { inputTokens: 9, cachedInputTokens: 0, outputTokens: 4, reasoningTokens: 2 };
const thought = "Two cities, two calls.";

/** The first answer thinks and makes two calls at once; what comes after their results is text. */
const callingSteps: readonly Step[] = [
  { type: "reasoning-start" },
  { type: "reasoning-delta", text: thought },
  { type: "reasoning-end" },
  { type: "tool-call-start", id: "call_rome", name: "weather" },
  { type: "tool-call-delta", arguments: '{"city":' },
  { type: "tool-call-delta", arguments: '"Rome"}' },
  { type: "tool-call-end" },
  { type: "tool-call-start", id: "call_oslo", name: "weather" },
  { type: "tool-call-delta", arguments: '{"city":"Oslo"}' },
  { type: "tool-call-end" },
  { type: "finish", reason: "tool-calls", stopSequence: null, usage },
];
const tellingSteps: readonly Step[] = [
  { type: "text-start" },
  { type: "text-delta", text: "Sun in Rome, " },
  { type: "text-delta", text: "snow in Oslo." },
  { type: "text-end" },
  { type: "finish", reason: "stop", stopSequence: null, usage },
];

/** A service without a network: it reads every request as the real one does and answers by what it read. */
function serveWeather(format: WireFormatName): { server: FakeServer; seen: Conversation[] } {
  const seen: Conversation[] = [];
  const server = serveAnswers((body: JsonRecord) => {
    try {
      const parsed = wireFormats[format].parseRequest(body, testReasoning);
      seen.push(parsed.conversation);
      const hasResults = parsed.conversation.turns.some((turn) => turn.role === "tool");
      const steps = hasResults ? tellingSteps : callingSteps;
      return parsed.stream
        ? { frames: streamOf(format, body, steps) }
        : { body: bodyOf(format, body, steps) };
    } catch (error) {
      const shape = format === "messages" ? "messages" : "openai";
      return buildErrorAnswer(failureFromUnknown(error), shape, "req_1");
    }
  });
  return { server, seen };
}

const weatherOf = (city: string): string => (city === "Rome" ? "sun" : "snow");
const schema = {
  type: "object" as const,
  properties: { city: { type: "string" as const } },
  required: ["city"],
};
const prompt = "How is the weather in Rome and Oslo?";
const answer = "Sun in Rome, snow in Oslo.";

/** The two conversations that a tool loop must have sent. */
function ensureLoop(seen: readonly Conversation[], reasoningComesBack: boolean): void {
  const asked: Turn = { role: "user", text: prompt };
  expect(seen.map(({ turns }) => turns)).toEqual([
    [asked],
    [
      asked,
      {
        role: "assistant",
        parts: [
          ...(reasoningComesBack ? [{ type: "reasoning", text: thought }] : []),
          { type: "tool-call", id: "call_rome", name: "weather", arguments: '{"city":"Rome"}' },
          { type: "tool-call", id: "call_oslo", name: "weather", arguments: '{"city":"Oslo"}' },
        ],
      },
      expect.objectContaining({
        role: "tool",
        callId: "call_rome",
        text: expect.stringContaining("sun"),
      }),
      expect.objectContaining({
        role: "tool",
        callId: "call_oslo",
        text: expect.stringContaining("snow"),
      }),
    ],
  ]);
  for (const { tools } of seen) expect(tools.map((one) => one.name)).toEqual(["weather"]);
}

interface Provider {
  readonly name: string;
  readonly format: WireFormatName;
  readonly connect: (server: FakeServer) => LanguageModel;
  readonly reasoningComesBack: boolean;
}

const base = { apiKey: "key", baseURL: "http://127.0.0.1/v1" } as const;
const providers: readonly Provider[] = [
  {
    name: "@ai-sdk/openai",
    format: "responses",
    connect: ({ fetch }) => createOpenAI({ ...base, fetch }).responses("service-llm"),
    reasoningComesBack: true,
  },
  {
    name: "@ai-sdk/openai chat",
    format: "chat-completions",
    connect: ({ fetch }) => createOpenAI({ ...base, fetch }).chat("service-llm"),
    // This client has no field for reasoning.
    reasoningComesBack: false,
  },
  {
    name: "@ai-sdk/openai-compatible",
    format: "chat-completions",
    connect: ({ fetch }) =>
      createOpenAICompatible({ ...base, name: "tributary", fetch })("service-llm"),
    reasoningComesBack: true,
  },
  {
    name: "@ai-sdk/anthropic",
    format: "messages",
    connect: ({ fetch }) => createAnthropic({ ...base, fetch })("service-llm"),
    reasoningComesBack: true,
  },
];

describe.each(providers)("a tool loop through $name", ({ format, connect, reasoningComesBack }) => {
  const settings = {
    prompt,
    maxOutputTokens: 1_000,
    maxRetries: 0,
    stopWhen: isStepCount(3),
    tools: {
      weather: tool({
        description: "Tells the weather",
        inputSchema: jsonSchema<{ city: string }>(schema),
        execute: ({ city }) => weatherOf(city),
      }),
    },
    providerOptions: {
      openai: { store: false, include: ["reasoning.encrypted_content"], forceReasoning: true },
    },
  };

  it("runs streamed", async () => {
    const { server, seen } = serveWeather(format);
    const result = streamText({ ...settings, model: connect(server) });
    expect(await result.text).toBe(answer);
    ensureLoop(seen, reasoningComesBack);
  });

  it("runs whole", async () => {
    const { server, seen } = serveWeather(format);
    const result = await generateText({ ...settings, model: connect(server) });
    expect(result.text).toBe(answer);
    ensureLoop(seen, reasoningComesBack);
  });
});

describe("a tool loop through openai", () => {
  const connect = (server: FakeServer): OpenAI =>
    new OpenAI({ ...noRetries, baseURL: base.baseURL, fetch: server.fetch });

  it.each([true, false])("runs with chat runTools, stream: %s", async (stream) => {
    const { server, seen } = serveWeather("chat-completions");
    const weather = {
      type: "function" as const,
      function: {
        name: "weather",
        description: "Tells the weather",
        parameters: schema,
        parse: (text: string) => JSON.parse(text) as { city: string },
        function: ({ city }: { city: string }) => weatherOf(city),
      },
    };
    const params = { model: "service-llm", messages: [{ role: "user" as const, content: prompt }] };
    const chat = connect(server).chat.completions;
    const runner = stream
      ? chat.runTools({ ...params, tools: [weather], stream: true })
      : chat.runTools({ ...params, tools: [weather] });
    expect(await runner.finalContent()).toBe(answer);
    // This helper has no field for reasoning.
    ensureLoop(seen, false);
  });

  it("runs with the output of one response in the input of the next", async () => {
    const { server, seen } = serveWeather("responses");
    const client = connect(server);
    const params = {
      model: "service-llm",
      store: false,
      include: ["reasoning.encrypted_content" as const],
      tools: [{ type: "function" as const, name: "weather", parameters: schema, strict: false }],
    };
    const first = await client.responses.create({ ...params, input: prompt });
    const results = first.output.flatMap((item) =>
      item.type === "function_call"
        ? [
            {
              type: "function_call_output" as const,
              call_id: item.call_id,
              output: weatherOf((JSON.parse(item.arguments) as { city: string }).city),
            },
          ]
        : [],
    );
    const second = await client.responses.create({
      ...params,
      // The vendor's documentation does this; its types differ in kinds of items that never come here.
      input: [{ role: "user", content: prompt }, ...(first.output as ResponseInput), ...results],
    });
    expect(second.output_text).toBe(answer);
    ensureLoop(seen, true);
  });
});

describe("a tool loop through anthropic", () => {
  it.each([true, false])("runs with the tool runner, stream: %s", async (stream) => {
    const { server, seen } = serveWeather("messages");
    const client = new Anthropic({
      ...noRetries,
      baseURL: "http://127.0.0.1",
      fetch: server.fetch,
    });
    const runner = client.beta.messages.toolRunner({
      model: "service-llm",
      max_tokens: 1_000,
      stream,
      messages: [{ role: "user", content: prompt }],
      tools: [
        {
          name: "weather",
          description: "Tells the weather",
          input_schema: schema,
          parse: (input: unknown) => input as { city: string },
          run: ({ city }: { city: string }) => weatherOf(city),
        },
      ],
    });
    const last = await runner.runUntilDone();
    expect(last.content).toEqual([expect.objectContaining({ type: "text", text: answer })]);
    ensureLoop(seen, true);
  });
});
