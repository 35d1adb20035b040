import type OpenAI from "openai";
import { expect, test } from "vitest";
import { openGenerationCollector } from "../../../src/conversation/collect-generation.ts";
import type { GenerationEvent } from "../../../src/conversation/generation-event.ts";
import { Failure } from "../../../src/failure.ts";
import { buildChatCompletion } from "../../../src/formats/chat-completions/response.ts";
import { openChatCompletionsEncoder } from "../../../src/formats/chat-completions/stream-encoder.ts";
import type {
  ChatCompletionBody,
  ChatCompletionsEcho,
} from "../../../src/formats/chat-completions/wire.ts";
import { ensureBody, ensureFrames } from "../../wire/ensure-wire.ts";
import { callEvents, dataOf, finishOf, openAnswerContext, partEvents } from "../answer-context.ts";

type Mutable<T> = { -readonly [Key in keyof T]: Mutable<T[Key]> };
// The answer is what the SDK declares, but for the extension field.
({}) as Mutable<ChatCompletionBody> satisfies OpenAI.ChatCompletion;

const echo: ChatCompletionsEcho = { model: "m\u2028", includeUsage: false, customTools: ["run"] };

function stream(events: readonly GenerationEvent[], over: Partial<ChatCompletionsEcho> = {}) {
  const encoder = openChatCompletionsEncoder(openAnswerContext({ ...echo, ...over }));
  const frames = encoder.open() + encoder.encode(events) + encoder.finish(finishOf("stop"));
  const usageAsked = over.includeUsage ?? echo.includeUsage;
  return dataOf(ensureFrames("chat-completions", frames, { usageAsked }));
}

function deltasOf(chunks: readonly unknown[]): readonly unknown[] {
  return (chunks.slice(0, -1) as OpenAI.ChatCompletionChunk[]).map(
    (chunk) => chunk.choices[0]?.delta,
  );
}

function body(events: readonly GenerationEvent[], reason: Parameters<typeof finishOf>[0]) {
  const collector = openGenerationCollector();
  collector.add(events);
  const generation = collector.finish(finishOf(reason));
  return ensureBody("chat-completions", buildChatCompletion(generation, openAnswerContext(echo)));
}

test("the stream says role, pieces, finish and [DONE]; every event is a frame of its own", () => {
  const encoder = openChatCompletionsEncoder(openAnswerContext(echo));
  const constant = {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "m\u2028",
  };
  const chunk = (delta: object, finishReason: string | null = null) => ({
    ...constant,
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  });
  expect(dataOf(encoder.open())).toEqual([chunk({ role: "assistant", content: "" })]);
  expect(encoder.encode([{ type: "text-start" }])).toBe("");
  const pieces = ["a", 'b"\n', "\u2028", "\ud83d", "\ude00"];
  const frames = encoder.encode(pieces.map((text) => ({ type: "text-delta", text })));
  expect(dataOf(frames)).toEqual(pieces.map((content) => chunk({ content })));
  expect(encoder.keepalive()).toBe(": ping\n\n");
  expect(dataOf(encoder.finish(finishOf("stop")))).toEqual([chunk({}, "stop"), "[DONE]"]);
});

test("with include_usage every chunk has usage null, and one more has the usage and no choice", () => {
  const chunks = stream(partEvents("text", "a"), {
    includeUsage: true,
  }) as OpenAI.ChatCompletionChunk[];
  expect(chunks.slice(0, -2).map((chunk) => chunk.usage)).toEqual([null, null, null]);
  expect(chunks.at(-2)).toMatchObject({
    choices: [],
    usage: {
      prompt_tokens: 100,
      completion_tokens: 7,
      total_tokens: 107,
      prompt_tokens_details: { cached_tokens: 30 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
  });
  for (const chunk of stream(partEvents("text", "a")).slice(0, -1))
    expect(chunk).not.toHaveProperty("usage");
});

test("calls are numbered, named once, and custom ones carry decoded input", () => {
  const events = [
    ...partEvents("reasoning", "hm"),
    ...callEvents("c1", 'f"', '{"a"', ":1}"),
    ...callEvents("c2", "run", '{"inp', 'ut": "x\\', "n", 'y"', "}"),
    ...callEvents("c3", "g"),
  ];
  expect(deltasOf(stream(events))).toEqual([
    { role: "assistant", content: "" },
    { reasoning_content: "hm" },
    {
      tool_calls: [
        { index: 0, id: "c1", type: "function", function: { name: 'f"', arguments: "" } },
      ],
    },
    { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] },
    { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
    { tool_calls: [{ index: 1, id: "c2", type: "custom", custom: { name: "run", input: "" } }] },
    { tool_calls: [{ index: 1, custom: { input: "x" } }] },
    { tool_calls: [{ index: 1, custom: { input: "\n" } }] },
    { tool_calls: [{ index: 1, custom: { input: "y" } }] },
    {
      tool_calls: [
        { index: 2, id: "c3", type: "function", function: { name: "g", arguments: "" } },
      ],
    },
    {},
  ]);
  expect(body(events, "tool-calls").choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: {
      content: null,
      reasoning_content: "hm",
      tool_calls: [
        { id: "c1", type: "function", function: { name: 'f"', arguments: '{"a":1}' } },
        { id: "c2", type: "custom", custom: { name: "run", input: "x\ny" } },
        { id: "c3", function: { arguments: "" } },
      ],
    },
  });
});

test("a custom call that was cut before its input began is told as the body tells it", () => {
  const events = callEvents("c", "run", '{"inp');
  expect(deltasOf(stream(events))[2]).toEqual({
    tool_calls: [{ index: 0, custom: { input: '{"inp' } }],
  });
  expect(body(events, "length")).toMatchObject({
    created: 1_700_000_000,
    choices: [{ message: { tool_calls: [{ custom: { input: '{"inp' } }] } }],
  });
});

test("content is null beside calls alone and empty when there is nothing; a cut call says length", () => {
  expect(body([], "stop").choices[0].message).toEqual({
    role: "assistant",
    content: "",
    refusal: null,
  });
  expect(body(partEvents("reasoning", "r"), "length").choices[0].message.content).toBe("");
  const cut = body([...partEvents("text", "t"), ...callEvents("c", "f", '{"a')], "length");
  expect(cut.choices[0].finish_reason).toBe("length");
  expect(cut.choices[0].message.content).toBe("t");
  expect(body([], "content-filter").choices[0].finish_reason).toBe("content_filter");
});

test("a failure is one error frame without [DONE]", () => {
  const encoder = openChatCompletionsEncoder(openAnswerContext(echo));
  encoder.encode([{ type: "text-start" }]);
  const failure = new Failure("deployment_failed", "It went away. Try again.");
  expect(encoder.fail(failure)).toBe(
    'data: {"error":{"message":"It went away. Try again.","type":"server_error","param":null,"code":"deployment_failed","request_id":"req_1"}}\n\n',
  );
});
