import type { messagesLosses } from "./tables/messages.ts";
import type { JsonRecord } from "../../cases/files.ts";
import type { Examples, SealedReasoning } from "./example.ts";
import { messagesOptionExamples, messagesToolExamples } from "./messages-options.ts";

const hi = { role: "user", content: "Hi" };

/** A body whose messages are the plain one and others. */
function after(...messages: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return { messages: [hi, ...messages] };
}

function userSays(...content: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return after({ role: "user", content });
}

function modelSaid(...content: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return after({ role: "assistant", content });
}

const toolUse = { type: "tool_use", id: "c1", name: "weather", input: { city: "Rome" } };
const call = { role: "assistant", content: [toolUse] };
const calledUpstream = {
  role: "assistant",
  content: null,
  tool_calls: [
    { id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } },
  ],
};

function results(...blocks: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return after(call, { role: "user", content: blocks });
}

function result(content: unknown): JsonRecord {
  return { type: "tool_result", tool_use_id: "c1", content };
}

function resultUpstream(content: string): { messages: readonly JsonRecord[] } {
  return after(calledUpstream, { role: "tool", tool_call_id: "c1", content });
}

function toolChanges(name: string, type: string): { messages: readonly JsonRecord[] } {
  const tool = { type, name };
  const changes = ["tool_addition", "tool_removal"].map((change) => ({ type: change, tool }));
  return after({ role: "system", content: [{ type: "text", text: "From now on:" }, ...changes] });
}

function leftOut(noun: string): string {
  return `[${noun} left out: this service reads text only]`;
}

const conversation = {
  "user-text": [
    {
      send: { messages: [{ role: "user", content: "Good day" }] },
      arrives: { messages: [{ role: "user", content: "Good day" }] },
    },
    {
      send: userSays({ type: "text", text: "one " }, { type: "text", text: "two" }),
      arrives: after({ role: "user", content: "one two" }),
    },
  ],
  system: [
    {
      send: { system: "First." },
      arrives: { messages: [{ role: "system", content: "First." }, hi] },
    },
    {
      send: { system: [{ type: "text", text: "First." }] },
      arrives: { messages: [{ role: "system", content: "First." }, hi] },
    },
    {
      send: after({ role: "system", content: "Later." }),
      arrives: after({ role: "system", content: "Later." }),
    },
    {
      send: after({ role: "system", content: [{ type: "text", text: "Later." }] }),
      arrives: after({ role: "system", content: "Later." }),
    },
  ],
  "leading-systems": [
    {
      send: {
        system: [
          { type: "text", text: "First." },
          { type: "text", text: "" },
          { type: "text", text: "Second." },
        ],
        messages: [{ role: "system", content: "Third." }, hi],
      },
      arrives: { messages: [{ role: "system", content: "First.\n\nSecond.\n\nThird." }, hi] },
    },
  ],
  "billing-header": [
    { send: { system: [{ type: "text", text: "x-anthropic-billing-header: a=b" }] } },
  ],
  "assistant-text": [
    {
      send: after({ role: "assistant", content: "An answer" }),
      arrives: after({ role: "assistant", content: "An answer" }),
    },
    {
      send: modelSaid({ type: "text", text: "one " }, { type: "text", text: "two" }),
      arrives: after({ role: "assistant", content: "one two" }),
    },
  ],
  "assistants-in-a-row": [
    {
      send: after({ role: "assistant", content: "one " }, { role: "assistant", content: "two" }),
      arrives: after({ role: "assistant", content: "one two" }),
    },
  ],
  "empty-answers": [{ send: after({ role: "assistant", content: [] }) }],
  "tool-calls": [{ send: after(call), arrives: after(calledUpstream) }],
  "tool-input": [{ send: after(call), arrives: after(calledUpstream) }],
  "tool-results": [{ send: results(result("Rain.")), arrives: resultUpstream("Rain.") }],
  "texts-beside-results": [
    {
      send: results({ type: "text", text: "And now?" }, result("Rain.")),
      arrives: {
        messages: [...resultUpstream("Rain.").messages, { role: "user", content: "And now?" }],
      },
    },
  ],
  "result-parts": [
    {
      send: results(
        result([
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ]),
      ),
      arrives: resultUpstream("a\nb"),
    },
  ],
  "result-error": [
    { send: results({ ...result(""), is_error: true }), arrives: resultUpstream("error") },
    {
      send: results({ ...result("No city."), is_error: true }),
      arrives: resultUpstream("No city."),
    },
  ],
  "tool-reference": [
    {
      send: results(result([{ type: "tool_reference", tool_name: "maps" }])),
      arrives: resultUpstream("Tool available: maps"),
    },
  ],
  "search-result": [
    {
      send: results(
        result([
          {
            type: "search_result",
            title: "Sky",
            source: "http://127.0.0.1/",
            content: [{ type: "text", text: "Blue." }],
          },
        ]),
      ),
      arrives: resultUpstream("Sky\nhttp://127.0.0.1/\nBlue."),
    },
  ],
  "result-media": [
    { send: results(result([{ type: "image" }])), arrives: resultUpstream(leftOut("image")) },
    { send: results(result([{ type: "document" }])), arrives: resultUpstream(leftOut("file")) },
  ],
  "tool-changes": [
    {
      send: toolChanges("weather", "tool_reference"),
      arrives: after({
        role: "system",
        content:
          "From now on:\nTool available: weather\nTool no longer available, do not call it: weather",
      }),
    },
  ],
  "mcp-tool-changes": [
    { send: toolChanges("weather", "mcp_tool_reference") },
    { send: toolChanges("weather", "mcp_toolset_reference") },
  ],
  "tool-definitions": [
    {
      send: toolChanges("weather", "tool_definition"),
      param: "messages[1].content[1].tool",
    },
  ],
  media: ["image", "document"].map((type) => ({
    send: userSays({ type, source: { type: "base64", data: "" } }),
    param: "messages[1].content[0]",
  })),
  "unknown-parts": [
    ...["search_result", "container_upload", "tool_addition", "tool_removal", "unknown"].map(
      (type) => ({ send: userSays({ type }), param: "messages[1].content[0].type" }),
    ),
    {
      send: after({ role: "system", content: [{ type: "unknown" }] }),
      param: "messages[1].content[0].type",
    },
    ...["browser_state", "unknown"].map((type) => ({
      send: results(result([{ type }])),
      param: "messages[2].content[0].content[0].type",
    })),
  ],
  "hosted-records": [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "compaction",
    "fallback",
    "unknown",
  ].map((type) => ({ send: modelSaid({ type }), param: "messages[1].content[0].type" })),
  "unknown-roles": ["tool", "developer", "unknown"].map((role) => ({
    send: after({ role, content: "x" }),
    param: "messages[1].role",
  })),
  "item-extras": [
    {
      send: {
        system: [{ type: "text", text: "First.", cache_control: {}, citations: null }],
        ...after(
          { role: "user", content: [{ type: "text", text: "x", cache_control: {} }] },
          {
            role: "assistant",
            content: [
              { type: "text", text: "y", citations: [] },
              { ...toolUse, cache_control: {}, caller: { type: "direct" } },
            ],
          },
          {
            role: "user",
            content: [
              { ...result([{ type: "text", text: "z", cache_control: {} }]), cache_control: {} },
            ],
          },
        ),
      },
    },
  ],
} as const satisfies Partial<Examples<typeof messagesLosses>>;

/** What the test sends for each row of the table of Messages. */
export function messagesExamples(seal: SealedReasoning): Examples<typeof messagesLosses> {
  const thinking = { type: "thinking", thinking: seal.text, signature: seal.signature };
  const text = { type: "text", text: "So." };
  return {
    ...conversation,
    ...messagesToolExamples,
    ...messagesOptionExamples,
    reasoning: [
      {
        send: modelSaid(thinking, text),
        arrives: after({ role: "assistant", content: "So.", reasoning_content: seal.text }),
      },
    ],
    "foreign-reasoning": [
      { send: modelSaid({ ...thinking, signature: "" }, text) },
      { send: modelSaid({ ...thinking, thinking: "Something else" }, text) },
      { send: modelSaid({ type: "redacted_thinking", data: "x" }, text) },
    ],
  };
}
