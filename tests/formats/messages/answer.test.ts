import type Anthropic from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { openGenerationCollector } from "../../../src/conversation/collect-generation.ts";
import type { GenerationEvent } from "../../../src/conversation/generation-event.ts";
import { Failure } from "../../../src/failure.ts";
import { buildMessage } from "../../../src/formats/messages/response.ts";
import { openMessagesEncoder } from "../../../src/formats/messages/stream-encoder.ts";
import type { MessageBody, MessagesUsage } from "../../../src/formats/messages/wire.ts";
import { ensureBody, ensureFrames } from "../../wire/ensure-wire.ts";
import { callEvents, dataOf, finishOf, openAnswerContext, partEvents } from "../answer-context.ts";

// Every field is of the SDK's type; the fields about tools that run on the server are left out.
({}) as MessagesUsage satisfies Partial<Anthropic.Usage>;
({}) as Omit<MessageBody, "content" | "usage"> satisfies Partial<Anthropic.Message>;
({}) as MessageBody["content"][number] satisfies
  | Omit<Anthropic.TextBlock, "citations">
  | Anthropic.ThinkingBlock
  | Omit<Anthropic.ToolUseBlock, "caller">;

const echo = { model: "m" };

function stream(events: readonly GenerationEvent[], finish = finishOf("stop")): string {
  const encoder = openMessagesEncoder(openAnswerContext(echo));
  const frames = encoder.open() + encoder.encode(events) + encoder.finish(finish);
  return ensureFrames("messages", frames);
}

function body(events: readonly GenerationEvent[], finish = finishOf("stop")) {
  const collector = openGenerationCollector();
  collector.add(events);
  return ensureBody("messages", buildMessage(collector.finish(finish), openAnswerContext(echo)));
}

const usage = {
  input_tokens: 70,
  output_tokens: 7,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 30,
};

const delta = (index: number, fields: object) => ({
  type: "content_block_delta",
  index,
  delta: fields,
});

test("blocks follow one another with their indexes, reasoning is signed at its end", () => {
  const events = [
    ...partEvents("reasoning", "h", "m"),
    ...partEvents("text", 'a"', "\n"),
    ...callEvents("t1", "f", '{"a"', ":1}"),
  ];
  const frames = stream(events, finishOf("tool-calls"));
  expect(dataOf(frames).slice(1)).toEqual([
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "thinking", thinking: "", signature: "" },
    },
    delta(0, { type: "thinking_delta", thinking: "h" }),
    delta(0, { type: "thinking_delta", thinking: "m" }),
    delta(0, { type: "signature_delta", signature: "signed(hm)" }),
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    delta(1, { type: "text_delta", text: 'a"' }),
    delta(1, { type: "text_delta", text: "\n" }),
    { type: "content_block_stop", index: 1 },
    {
      type: "content_block_start",
      index: 2,
      content_block: { type: "tool_use", id: "t1", name: "f", input: {} },
    },
    delta(2, { type: "input_json_delta", partial_json: '{"a"' }),
    delta(2, { type: "input_json_delta", partial_json: ":1}" }),
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage },
    { type: "message_stop" },
  ]);
  expect(body(events, finishOf("tool-calls"))).toEqual({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [
      { type: "thinking", thinking: "hm", signature: "signed(hm)" },
      { type: "text", text: 'a"\n' },
      { type: "tool_use", id: "t1", name: "f", input: { a: 1 } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage,
  });
});

test("every frame is named by the type of its data", () => {
  const frames = stream([...partEvents("reasoning", "r"), ...partEvents("text", "t")]);
  for (const frame of frames.trimEnd().split("\n\n")) {
    const [, name] = /^event: (\w+)\ndata: \{"type":"\1"/u.exec(frame) ?? [];
    expect(name, frame).toBeDefined();
  }
});

test("the opening message has the estimate, and reasoning is signed once a block", () => {
  const encoder = openMessagesEncoder(openAnswerContext(echo));
  expect(dataOf(encoder.open())).toEqual([
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 21,
          output_tokens: 0,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
        },
      },
    },
  ]);
  const twice = [...partEvents("reasoning", "a"), ...partEvents("reasoning", "b")];
  expect(encoder.encode(twice).match(/signed\(\w+\)/gu)).toEqual(["signed(a)", "signed(b)"]);
});

test.each([
  [finishOf("stop"), "end_turn", null],
  [finishOf("stop", "END"), "stop_sequence", "END"],
  [finishOf("length"), "max_tokens", null],
  [finishOf("length", "END"), "max_tokens", null],
  [finishOf("tool-calls"), "tool_use", null],
  [finishOf("content-filter"), "refusal", null],
])("%j stops with %s", (finish, stopReason, stopSequence) => {
  const expected = { stop_reason: stopReason, stop_sequence: stopSequence };
  expect(body([], finish)).toMatchObject({ content: [], ...expected, usage });
  expect(dataOf(stream([], finish)).at(-2)).toMatchObject({ delta: expected, usage });
});

test("a call that was cut keeps what is whole of its input", () => {
  const cut = body(callEvents("t", "f", '{"a":1,"b":"half'), finishOf("length"));
  expect(cut.content).toEqual([{ type: "tool_use", id: "t", name: "f", input: { a: 1 } }]);
});

test("keepalive is a comment and a ping", () => {
  const encoder = openMessagesEncoder(openAnswerContext(echo));
  expect(encoder.keepalive()).toBe(': ping\n\nevent: ping\ndata: {"type":"ping"}\n\n');
});

test("a failure is one error event, open block or not", () => {
  const encoder = openMessagesEncoder(openAnswerContext(echo));
  encoder.encode([{ type: "reasoning-start" }]);
  expect(encoder.fail(new Failure("overloaded", "Busy."))).toBe(
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Busy."},"request_id":"req_1"}\n\n',
  );
});
