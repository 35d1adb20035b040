import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, streamText, tool, type LanguageModel, type ToolSet } from "ai";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import type { Step } from "../cases/generations.ts";
import { bodyOf, finishOf, plainRequest, readSteps, streamOf } from "../cases/generations.ts";
import { arbitraryGeneration, stepsOf } from "../properties/arbitrary-generation.ts";
import { serveBody, serveStream, type FakeServer } from "./accumulators.ts";

const schema = jsonSchema({ type: "object", properties: { city: { type: "string" } } });
const names = ["weather", "now", "run", "files__read", "mcp__git__log"];
const tools: ToolSet = Object.fromEntries(
  names.map((name) => [name, tool({ description: name, inputSchema: schema })]),
);

interface Provider {
  readonly name: string;
  readonly format: WireFormatName;
  readonly connect: (server: FakeServer) => LanguageModel;
}

const base = { apiKey: "key", baseURL: "http://127.0.0.1/v1" } as const;
const providers: readonly Provider[] = [
  {
    name: "@ai-sdk/openai",
    format: "responses",
    connect: ({ fetch }) => createOpenAI({ ...base, fetch }).responses("service-llm"),
  },
  {
    name: "@ai-sdk/openai chat",
    format: "chat-completions",
    connect: ({ fetch }) => createOpenAI({ ...base, fetch }).chat("service-llm"),
  },
  {
    name: "@ai-sdk/openai-compatible",
    format: "chat-completions",
    connect: ({ fetch }) =>
      createOpenAICompatible({ ...base, name: "tributary", includeUsage: true, fetch })(
        "service-llm",
      ),
  },
  {
    name: "@ai-sdk/anthropic",
    format: "messages",
    connect: ({ fetch }) => createAnthropic({ ...base, fetch })("service-llm"),
  },
];

/** What an application sees of an answer. Two texts in a row are one to this SDK's callers. */
interface Seen {
  readonly text: string;
  readonly reasoning: string | undefined;
  readonly calls: readonly unknown[];
  readonly finishReason: string;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

const settings = {
  prompt: "Hello",
  maxOutputTokens: 1_000,
  maxRetries: 0,
  providerOptions: { openai: { store: false } },
} as const;

async function streamed(model: LanguageModel): Promise<Seen> {
  const errors: unknown[] = [];
  const result = streamText({
    ...settings,
    model,
    tools,
    onError: ({ error }) => void errors.push(error),
  });
  const [text, reasoning, calls, finishReason, usage] = await Promise.all([
    result.text,
    result.reasoningText,
    result.toolCalls,
    result.finishReason,
    result.usage,
  ]);
  expect(errors).toEqual([]);
  return { text, reasoning, calls: calls.map(bareCall), finishReason, ...bareUsage(usage) };
}

async function whole(model: LanguageModel): Promise<Seen> {
  const result = await generateText({ ...settings, model, tools });
  return {
    text: result.text,
    reasoning: result.reasoningText,
    calls: result.toolCalls.map(bareCall),
    finishReason: result.finishReason,
    ...bareUsage(result.usage),
  };
}

function bareUsage(usage: { inputTokens: number | undefined; outputTokens: number | undefined }) {
  return { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens };
}

function bareCall(call: { toolCallId: string; toolName: string; input: unknown }): unknown {
  return { id: call.toolCallId, name: call.toolName, input: call.input };
}

async function ensureSame(provider: Provider, steps: readonly Step[], bytes = 64): Promise<void> {
  const request = plainRequest(provider.format);
  const frames = streamOf(provider.format, request, steps);
  const fromStream = await streamed(provider.connect(serveStream(frames, bytes)));
  const body = bodyOf(provider.format, request, steps);
  const fromBody = await whole(provider.connect(serveBody(body)));
  const finish = finishOf(steps);
  // Half a call is text in a stream, where a Messages body can only hold what was complete of it.
  const isCut = finish?.reason === "length" || finish?.reason === "content-filter";
  const comparable = (seen: Seen): Seen =>
    isCut ? { ...seen, calls: seen.calls.slice(0, -1) } : seen;
  expect(comparable(fromStream)).toEqual(comparable(fromBody));
  expect(fromStream.calls).toHaveLength(fromBody.calls.length);
  const usage = finish?.usage;
  expect(fromStream).toMatchObject({
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
  });
}

/** This SDK refuses JSON with names that reach a prototype, in a stream in another way than in a body. */
const readable = arbitraryGeneration.filter(
  ({ events }) =>
    !/__proto__|constructor/u.test(
      events.map((event) => (event.type === "tool-call-delta" ? event.arguments : "")).join(""),
    ),
);

const cases = [
  "answer-text",
  "answer-unicode",
  "answer-call",
  "answer-call-no-arguments",
  "answer-parallel-calls",
  "answer-text-then-call",
  "answer-cut-text",
  "answer-filtered",
  "answer-empty",
  "answer-keepalive",
  "answer-reasoning",
  "answer-reasoning-only",
  "answer-usage",
];

describe.each(providers)("$name", (provider) => {
  it.each(cases)("reads a stream as it reads the body: %s", async (caseId) => {
    await ensureSame(provider, readSteps(caseId));
  });

  it("reads any stream as it reads the body", async () => {
    await fc.assert(
      fc.asyncProperty(readable, fc.integer({ min: 1, max: 300 }), async (made, bytes) => {
        await ensureSame(provider, stepsOf(made, [1, 3]), bytes);
      }),
      { numRuns: 25 },
    );
  });

  it.each(["answer-failed", "answer-failed-at-once", "answer-overloaded"])(
    "reports a failure in mid-stream as an error: %s",
    async (caseId) => {
      const frames = streamOf(provider.format, plainRequest(provider.format), readSteps(caseId));
      const errors: unknown[] = [];
      const result = streamText({
        ...settings,
        model: provider.connect(serveStream(frames)),
        onError: ({ error }) => void errors.push(error),
      });
      const reason = await Promise.resolve(result.finishReason).catch(() => "error");
      expect(errors).toHaveLength(1);
      expect(reason).toBe("error");
    },
  );
});
