import type Anthropic from "@anthropic-ai/sdk";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseMessagesRequest } from "../../../src/formats/messages/request.ts";
import { refusalOf, signedOnly } from "../answer-context.ts";

const user = { role: "user", content: "hi" };
const called = {
  role: "assistant",
  content: [{ type: "tool_use", id: "t1", name: "f", input: { a: 1 } }],
};

function parse(body: Readonly<Record<string, unknown>>) {
  return parseMessagesRequest({ messages: [user], ...body }, signedOnly);
}

function turnsOf(...messages: readonly unknown[]) {
  return parse({ messages }).conversation.turns;
}

function resultOf(content: unknown, more: object = {}): string | undefined {
  const block = { type: "tool_result", tool_use_id: "t1", content, ...more };
  const turn = turnsOf(user, called, { role: "user", content: [block] }).at(-1);
  return turn?.role === "tool" ? turn.text : undefined;
}

function refused(body: Readonly<Record<string, unknown>>) {
  const { code, facts } = refusalOf(() => parse(body));
  return `${code} ${facts.param ?? ""}`;
}

test("the SDK's own type of request is understood", () => {
  const request = {
    model: "service-llm",
    max_tokens: 128_000,
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=1; h=5;" },
      { type: "text", text: "One.", cache_control: { type: "ephemeral" } },
      { type: "text", text: "Two." },
    ],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "system", content: "Later." },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "signed(hm)" },
          { type: "thinking", thinking: "hm", signature: "" },
          { type: "redacted_thinking", data: "x" },
          { type: "text", text: "c" },
          { type: "text", text: "d" },
          { type: "tool_use", id: "t1", name: "f", input: { a: [1] } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "text", text: "e" },
          { type: "tool_result", tool_use_id: "t1", content: "done" },
          { type: "text", text: "f" },
        ],
      },
    ],
    tools: [
      { name: "f", input_schema: { type: "object" }, defer_loading: true },
      { type: "web_search_20250305", name: "web_search" },
    ],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
    stop_sequences: ["END"],
    thinking: { type: "enabled", budget_tokens: 2000 },
  } satisfies Anthropic.MessageCreateParams;
  const parsed = parseMessagesRequest({ ...request, temperature: 0.5, top_k: 4 }, signedOnly);
  expect(parsed).toMatchObject({
    stream: false,
    outputTokensRequested: 128_000,
    itemCount: 4,
    toolCount: 2,
    echo: { model: "service-llm" },
    options: { stopSequences: ["END"], temperature: 0.5, topK: 4, reasoningEffort: null },
  });
  expect(parsed.conversation).toEqual({
    turns: [
      { role: "system", text: "One.\n\nTwo." },
      { role: "user", text: "ab" },
      { role: "system", text: "Later." },
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: "hm" },
          { type: "text", text: "cd" },
          { type: "tool-call", id: "t1", name: "f", arguments: '{"a":[1]}' },
        ],
      },
      { role: "tool", callId: "t1", text: "done" },
      { role: "user", text: "ef" },
    ],
    tools: [{ name: "f", description: null, parameters: { type: "object" } }],
    toolChoice: { type: "required" },
    parallelToolCalls: false,
  });
});

test("the billing header changes nothing about the conversation", () => {
  const system = [{ type: "text", text: "S" }];
  const plain = parse({ system }).conversation;
  for (const hash of ["a", "b"]) {
    const header = { type: "text", text: `x-anthropic-billing-header: ${hash}` };
    expect(parse({ system: [header, ...system] }).conversation).toEqual(plain);
  }
});

test("what a tool gave back becomes text", () => {
  expect(resultOf("a")).toBe("a");
  expect(resultOf(undefined)).toBe("");
  expect(
    resultOf([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]),
  ).toBe("a\nb");
  expect(resultOf([{ type: "tool_reference", tool_name: "g" }])).toBe("Tool available: g");
  expect(
    resultOf([
      { type: "image", source: {} },
      { type: "document", source: {} },
    ]),
  ).toBe(
    "[image left out: this service reads text only]\n[file left out: this service reads text only]",
  );
  expect(
    resultOf([
      { type: "search_result", title: "T", source: "S", content: [{ type: "text", text: "c" }] },
    ]),
  ).toBe("T\nS\nc");
  expect(resultOf("broke", { is_error: true })).toBe("broke");
  for (const nothing of ["", [], null, undefined, [{ type: "text", text: "" }]])
    expect(resultOf(nothing, { is_error: true })).toBe("error");
});

test("a user turn of results alone is no user turn", () => {
  const result = { type: "tool_result", tool_use_id: "t1", content: "x" };
  for (const content of [[result], [{ type: "text", text: "" }, result]])
    expect(turnsOf(user, called, { role: "user", content }).map((turn) => turn.role)).toEqual([
      "user",
      "assistant",
      "tool",
    ]);
});

test("a user who said nothing still had a turn", () => {
  for (const content of ["", [], [{ type: "text", text: "" }]])
    expect(turnsOf({ role: "user", content })).toEqual([{ role: "user", text: "" }]);
});

test("an assistant turn whose reasoning was not ours is no turn when nothing else is left", () => {
  const turns = turnsOf(user, {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "made up", signature: "signed(other)" },
      { type: "text", text: "" },
    ],
  });
  expect(turns).toEqual([{ role: "user", text: "hi" }]);
});

test("thread is refused with what the SDK's tool runner looks for", () => {
  for (const thread of ["thread_1", {}, false, []])
    expect(refusalOf(() => parse({ thread }))).toMatchObject({
      code: "not_offered",
      facts: {
        param: "thread",
        messagesDetails: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
      },
    });
});

test.each([
  [{ output_format: { type: "json_schema" } }, "not_offered output_format.type"],
  [{ tools: [{ name: "a b" }] }, "invalid_request tools"],
  [{ tools: [{ type: "function", name: "f" }] }, "not_offered tools[0].type"],
  [{ tools: [{ name: "f" }, { name: "f" }] }, "invalid_request tools"],
  [{ tools: [{ name: "f", input_schema: [] }] }, "invalid_request tools[0].input_schema"],
  [{ tool_choice: { type: "tool", name: "f" } }, "invalid_request tool_choice"],
  [
    {
      tools: [{ type: "web_search_20250305", name: "web_search" }],
      tool_choice: { type: "tool", name: "web_search" },
    },
    "not_offered tool_choice",
  ],
  [{ tool_choice: "auto" }, "invalid_request tool_choice"],
  [{ tool_choice: { type: "required" } }, "invalid_request tool_choice.type"],
  [{ system: 5 }, "invalid_request system"],
  [{ system: [{ type: "image" }] }, "invalid_request system[0].type"],
  [{ max_tokens: 0 }, "invalid_request max_tokens"],
  [{ top_k: -1 }, "invalid_request top_k"],
  [{ stop_sequences: "END" }, "invalid_request stop_sequences"],
  [{ messages: [{ role: "tool", content: "" }] }, "invalid_request messages[0].role"],
  [
    { messages: [{ role: "user", content: [{ type: "image", source: {} }] }] },
    "not_offered messages[0].content[0]",
  ],
  [
    { messages: [{ role: "user", content: [{ type: "video_note" }] }] },
    "invalid_request messages[0].content[0].type",
  ],
  [
    { messages: [{ role: "user", content: [{ type: "tool_use", id: "t", name: "f" }] }] },
    "invalid_request messages[0].content[0].type",
  ],
  [
    { messages: [{ role: "assistant", content: [{ type: "tool_use", id: 5, name: "f" }] }] },
    "invalid_request messages[0].content[0].id",
  ],
  [
    { messages: [user, { role: "user", content: [{ type: "tool_result", tool_use_id: "t1" }] }] },
    "invalid_request messages[1].content[0].tool_use_id",
  ],
  [
    {
      messages: [
        called,
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", is_error: "yes" }] },
      ],
    },
    "invalid_request messages[1].content[0].is_error",
  ],
])("%j is answered %s", (body, expected) => {
  expect(refused(body)).toBe(expected);
});

test("hosted tools alone, and any choice of them, are as no tools, but they count", () => {
  const tools = [
    { type: "web_search_20250305", name: "web_search" },
    { type: "mcp_toolset", mcp_server_name: "x" },
  ];
  const parsed = parse({ tools, tool_choice: { type: "any" } });
  expect(parsed.conversation).toEqual(parse({}).conversation);
  expect(parsed.toolCount).toBe(2);
  expect(refused({ tools: Array.from({ length: 129 }, () => tools[0]) })).toBe(
    "invalid_request tools",
  );
});

test("ignored fields change nothing, whatever JSON they hold", () => {
  const plain = JSON.stringify(parse({}));
  const ignored = fc.constantFrom(
    ..."thinking output_config context_management mcp_servers container betas service_tier safeguards metadata cache_control x".split(
      " ",
    ),
  );
  fc.assert(
    fc.property(ignored, fc.jsonValue(), (name, value) => {
      const block = { type: "text", text: "hi", cache_control: value, citations: value };
      const messages = [{ role: "user", content: [block], x: value }];
      expect(JSON.stringify(parse({ messages, [name]: value }))).toBe(plain);
    }),
  );
  expect(JSON.stringify(parse({ output_config: { format: { type: "json_schema" } } }))).toBe(plain);
});

test("what the model wrote as input comes back as JSON text, __proto__ and all", () => {
  const input: unknown = JSON.parse('{"__proto__":{"x":1},"n":1.50,"s":"\\ud800"}');
  const turn = turnsOf(user, {
    role: "assistant",
    content: [{ type: "tool_use", id: "t1", name: "f", input }],
  })[1];
  expect(turn).toMatchObject({
    parts: [{ arguments: '{"__proto__":{"x":1},"n":1.5,"s":"\\ud800"}' }],
  });
});
