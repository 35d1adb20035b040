import * as fc from "fast-check";
import type OpenAI from "openai";
import { expect, test } from "vitest";
import { parseChatCompletionsRequest } from "../../../src/formats/chat-completions/request.ts";
import { refusalOf } from "../answer-context.ts";

const user = { role: "user", content: "hi" };
const called = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{ }" } }],
};

function turnsOf(...messages: readonly unknown[]) {
  return parseChatCompletionsRequest({ messages }).conversation.turns;
}

function refused(body: Readonly<Record<string, unknown>>) {
  const { code, facts } = refusalOf(() =>
    parseChatCompletionsRequest({ messages: [user], ...body }),
  );
  return `${code} ${facts.param ?? ""}`;
}

test("the SDK's own type of request is understood", () => {
  const request = {
    model: "service-llm-legacy",
    messages: [
      {
        role: "developer",
        content: [
          { type: "text", text: "Be " },
          { type: "text", text: "brief." },
        ],
      },
      { role: "user", content: "Run it." },
      {
        role: "assistant",
        tool_calls: [
          { id: "c1", type: "custom", custom: { name: "run", input: 'print("x")' } },
          { id: "c2", type: "function", function: { name: "look", arguments: '{ "a":1}' } },
        ],
      },
      {
        role: "tool",
        tool_call_id: "c2",
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "x" },
    ],
    tools: [
      {
        type: "function",
        function: { name: "look", parameters: { type: "object" }, strict: true },
      },
      { type: "custom", custom: { name: "run", description: "Runs." } },
    ],
    tool_choice: { type: "custom", custom: { name: "run" } },
    parallel_tool_calls: false,
    max_tokens: 5,
    max_completion_tokens: 6,
    stop: "END",
    seed: 7,
    stream: true,
    stream_options: { include_usage: true },
    response_format: { type: "json_object" },
    reasoning_effort: "high",
  } satisfies OpenAI.ChatCompletionCreateParams;
  const parsed = parseChatCompletionsRequest(request);
  expect(parsed).toMatchObject({
    stream: true,
    outputTokensRequested: 6,
    itemCount: 5,
    toolCount: 2,
    echo: { model: "service-llm-legacy", includeUsage: true, customTools: ["run"] },
    options: {
      stopSequences: ["END"],
      seed: 7,
      responseFormat: "json-object",
      reasoningEffort: "high",
    },
    conversation: { toolChoice: { type: "tool", name: "run" }, parallelToolCalls: false },
  });
  expect(parsed.conversation.turns).toEqual([
    { role: "system", text: "Be brief." },
    { role: "user", text: "Run it." },
    {
      role: "assistant",
      parts: [
        { type: "tool-call", id: "c1", name: "run", arguments: '{"input":"print(\\"x\\")"}' },
        { type: "tool-call", id: "c2", name: "look", arguments: '{ "a":1}' },
      ],
    },
    { role: "tool", callId: "c2", text: "one\ntwo" },
    { role: "tool", callId: "c1", text: "x" },
  ]);
});

test("an assistant turn is reasoning, then text, then calls, whatever the order of its fields", () => {
  const [, turn] = turnsOf(user, {
    role: "assistant",
    tool_calls: called.tool_calls,
    content: [
      { type: "text", text: "a" },
      { type: "refusal", refusal: "b" },
    ],
    reasoning: "ignored",
    reasoning_content: "r",
  });
  expect(turn).toMatchObject({
    parts: [{ type: "reasoning", text: "r" }, { type: "text", text: "ab" }, { type: "tool-call" }],
  });
});

test.each([{ content: null }, { content: "" }, {}, { content: [] }])(
  "an assistant turn with %j and a call has the call alone; without it, it is no turn",
  (content) => {
    expect(turnsOf(user, { ...called, content: undefined, ...content })[1]).toMatchObject({
      parts: [{ type: "tool-call", arguments: "{ }" }],
    });
    expect(turnsOf(user, { role: "assistant", ...content }, user)).toHaveLength(2);
  },
);

test("media in a tool result becomes a note, in a user's message a refusal", () => {
  const parts = [
    { type: "text", text: "see" },
    { type: "image_url", image_url: { url: "data:" } },
    { type: "file", file: {} },
    { type: "input_audio", input_audio: {} },
  ];
  expect(
    turnsOf(user, called, { role: "tool", tool_call_id: "c1", content: parts }).at(-1),
  ).toEqual({
    role: "tool",
    callId: "c1",
    text: [
      "see",
      "[image left out: this service reads text only]",
      "[file left out: this service reads text only]",
      "[audio left out: this service reads text only]",
    ].join("\n"),
  });
  expect(refused({ messages: [user, { role: "user", content: parts }] })).toBe(
    "not_offered messages[1].content[1]",
  );
});

test("says of n what to do instead, which is not to try again", () => {
  const body = { messages: [user], n: 2 };
  expect(() => parseChatCompletionsRequest(body)).toThrow(
    "n: more than one answer is not offered. Leave n out, or send n requests.",
  );
});

test.each([
  [{ n: 2 }, "not_offered n"],
  [{ n: "2" }, "invalid_request n"],
  [{ logprobs: true }, "not_offered logprobs"],
  [{ top_logprobs: 3 }, "not_offered top_logprobs"],
  [{ functions: [] }, "not_offered functions"],
  [{ function_call: "auto" }, "not_offered function_call"],
  [{ audio: {} }, "not_offered audio"],
  [{ modalities: ["text", "audio"] }, "not_offered modalities"],
  [{ tools: [{ type: "web_search" }] }, "not_offered tools[0].type"],
  [{ tools: [{ type: "function", function: { name: "a b" } }] }, "invalid_request tools"],
  [
    { tools: [{ type: "function", function: { name: "a", parameters: 5 } }] },
    "invalid_request tools[0].function.parameters",
  ],
  [{ tools: {} }, "invalid_request tools"],
  [{ tool_choice: { type: "function", function: { name: "f" } } }, "invalid_request tool_choice"],
  [{ tool_choice: { type: "allowed_tools", allowed_tools: {} } }, "not_offered tool_choice"],
  [{ tool_choice: "any" }, "invalid_request tool_choice"],
  [{ response_format: { type: "xml" } }, "invalid_request response_format.type"],
  [{ stop: [5] }, "invalid_request stop[0]"],
  [{ stop: "" }, "invalid_request stop"],
  [{ stream: "true" }, "invalid_request stream"],
  [{ stream_options: true }, "invalid_request stream_options"],
  [{ max_tokens: 0, max_completion_tokens: 5 }, "invalid_request max_tokens"],
  [{ seed: 1e300 }, "invalid_request seed"],
  [{ messages: [] }, "invalid_request messages"],
  [{ messages: undefined }, "invalid_request messages"],
  [{ messages: ["hi"] }, "invalid_request messages[0]"],
  [{ messages: [{ role: "function", content: "" }] }, "not_offered messages[0].role"],
  [{ messages: [{ role: "robot", content: "" }] }, "invalid_request messages[0].role"],
  [{ messages: [{ role: "user" }] }, "invalid_request messages[0].content"],
  [
    { messages: [{ role: "user", content: [{ type: "refusal", refusal: "" }] }] },
    "invalid_request messages[0].content[0].type",
  ],
  [
    { messages: [user, { role: "tool", tool_call_id: "c1", content: "" }] },
    "invalid_request messages[1].tool_call_id",
  ],
  [
    { messages: [user, { role: "tool", tool_call_id: "c1", content: "" }, called] },
    "invalid_request messages[1].tool_call_id",
  ],
  [
    {
      messages: [{ ...called, tool_calls: [{ id: "c", function: { name: "f", arguments: {} } }] }],
    },
    "invalid_request messages[0].tool_calls[0].function.arguments",
  ],
  [
    { messages: [{ role: "assistant", function_call: {} }] },
    "not_offered messages[0].function_call",
  ],
])("%j is answered %s", (body, expected) => {
  expect(refused(body)).toBe(expected);
});

test("a body full of nulls is as good as one without those fields", () => {
  const names =
    "model stream stream_options max_tokens max_completion_tokens tools tool_choice parallel_tool_calls temperature top_p stop seed presence_penalty frequency_penalty reasoning_effort response_format n logprobs top_logprobs functions function_call audio modalities".split(
      " ",
    );
  const nulls = Object.fromEntries(names.map((name) => [name, null]));
  expect(parseChatCompletionsRequest({ ...nulls, messages: [user] })).toEqual(
    parseChatCompletionsRequest({ messages: [user] }),
  );
});

test("ignored fields change nothing, whatever JSON they hold", () => {
  const plain = JSON.stringify(parseChatCompletionsRequest({ messages: [user] }));
  const ignored = fc.constantFrom("user", "metadata", "store", "service_tier", "prediction", "x");
  fc.assert(
    fc.property(ignored, fc.jsonValue(), (name, value) => {
      const message = { ...user, name: value, x: value };
      const body = { messages: [message], [name]: value };
      expect(JSON.stringify(parseChatCompletionsRequest(body))).toBe(plain);
    }),
  );
});

test("__proto__ and lone surrogates from a client do no harm and are kept", () => {
  const body: unknown = JSON.parse(
    `{"__proto__":{"stream":true,"model":"evil"},"messages":[{"role":"user","content":"\\ud800","__proto__":{"role":"system"}}],
      "tools":[{"type":"function","function":{"name":"f","parameters":{"__proto__":{"type":"string"},"constructor":{}}}}]}`,
  );
  const parsed = parseChatCompletionsRequest(body as Record<string, unknown>);
  expect(parsed.stream).toBe(false);
  expect(parsed.echo.model).toBe("service-llm");
  expect(parsed.conversation.turns).toEqual([{ role: "user", text: "\ud800" }]);
  expect(JSON.stringify(parsed.conversation.tools[0]?.parameters)).toBe(
    '{"__proto__":{"type":"string"},"constructor":{}}',
  );
  expect(Object.hasOwn(Object.prototype, "stream")).toBe(false);
});

test("2,000 messages with parts are read within the time of a request", () => {
  const messages = Array.from({ length: 2000 }, () => ({
    role: "user",
    content: [{ type: "text", text: "x" }],
  }));
  expect(parseChatCompletionsRequest({ messages }).itemCount).toBe(2000);
});
