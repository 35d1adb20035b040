import type { responsesLosses } from "./tables/responses.ts";
import type { JsonRecord } from "../../cases/files.ts";
import type { Examples, SealedReasoning } from "./example.ts";
import { responsesOptionExamples, responsesToolExamples } from "./responses-options.ts";

const hi = { role: "user", content: "Hi" };

/** A body whose input is the plain one and other items. */
function after(...items: readonly JsonRecord[]): { input: readonly JsonRecord[] } {
  return { input: [hi, ...items] };
}

/** What the deployment gets for such a body. */
function arrived(...messages: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return { messages: [hi, ...messages] };
}

const call = { type: "function_call", call_id: "c1", name: "weather", arguments: '{"a": 1' };
const calledUpstream = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: '{"a": 1' } }],
};

function result(output: unknown): JsonRecord {
  return { type: "function_call_output", call_id: "c1", output };
}

function resultUpstream(content: string): JsonRecord {
  return { role: "tool", tool_call_id: "c1", content };
}

const conversation = {
  "user-text": [
    {
      send: { input: "Good day" },
      arrives: { messages: [{ role: "user", content: "Good day" }] },
    },
    {
      send: { input: [{ role: "user", content: "Good day" }] },
      arrives: { messages: [{ role: "user", content: "Good day" }] },
    },
    {
      send: after({
        role: "user",
        content: [
          { type: "input_text", text: "one " },
          { type: "text", text: "two" },
        ],
      }),
      arrives: arrived({ role: "user", content: "one two" }),
    },
  ],
  system: [
    {
      send: { instructions: "First." },
      arrives: { messages: [{ role: "system", content: "First." }, hi] },
    },
    {
      send: after({ role: "system", content: "Later." }),
      arrives: arrived({ role: "system", content: "Later." }),
    },
    {
      send: after({ role: "developer", content: [{ type: "input_text", text: "Later." }] }),
      arrives: arrived({ role: "system", content: "Later." }),
    },
  ],
  "leading-systems": [
    {
      send: {
        instructions: "First.",
        input: [{ role: "system", content: "" }, { role: "developer", content: "Second." }, hi],
      },
      arrives: { messages: [{ role: "system", content: "First.\n\nSecond." }, hi] },
    },
  ],
  "assistant-text": [
    {
      send: after({ role: "assistant", content: "An answer" }),
      arrives: arrived({ role: "assistant", content: "An answer" }),
    },
    {
      send: after({ role: "assistant", content: [{ type: "output_text", text: "In parts" }] }),
      arrives: arrived({ role: "assistant", content: "In parts" }),
    },
  ],
  "assistants-in-a-row": [
    {
      send: after({ role: "assistant", content: "one" }, call),
      arrives: arrived({ ...calledUpstream, content: "one" }),
    },
  ],
  "empty-answers": [{ send: after({ role: "assistant", content: [] }) }],
  "refusal-parts": [
    {
      send: after({ role: "assistant", content: [{ type: "refusal", refusal: "No." }] }),
      arrives: arrived({ role: "assistant", content: "No." }),
    },
  ],
  "tool-calls": [{ send: after(call), arrives: arrived(calledUpstream) }],
  "custom-calls": [
    {
      send: after({ type: "custom_tool_call", call_id: "c1", name: "patch", input: "a b" }),
      arrives: arrived({
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c1", type: "function", function: { name: "patch", arguments: '{"input":"a b"}' } },
        ],
      }),
    },
  ],
  "namespaced-calls": [
    ...[
      { ...call, name: "log", arguments: '{"input":"x"}' },
      { type: "custom_tool_call", call_id: "c1", name: "log", input: "x" },
    ].map((item) => ({
      send: after({ ...item, namespace: "git" }),
      arrives: arrived({
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "c1",
            type: "function",
            function: { name: "git__log", arguments: '{"input":"x"}' },
          },
        ],
      }),
    })),
  ],
  "tool-results": [
    {
      send: after(call, result("Rain.")),
      arrives: arrived(calledUpstream, resultUpstream("Rain.")),
    },
    {
      send: after(call, { type: "custom_tool_call_output", call_id: "c1", output: "Rain." }),
      arrives: arrived(calledUpstream, resultUpstream("Rain.")),
    },
  ],
  "result-parts": [
    {
      send: after(
        call,
        result([
          { type: "input_text", text: "a" },
          { type: "refusal", refusal: "b" },
        ]),
      ),
      arrives: arrived(calledUpstream, resultUpstream("a\nb")),
    },
  ],
  "result-media": [
    ...["image", "file", "audio"].map((noun) => ({
      send: after(call, result([{ type: `input_${noun}` }])),
      arrives: arrived(
        calledUpstream,
        resultUpstream(`[${noun} left out: this service reads text only]`),
      ),
    })),
  ],
  media: ["input_image", "input_file", "input_audio"].map((type) => ({
    send: after({ role: "user", content: [{ type }] }),
    param: "input[1].content[0]",
  })),
  "unknown-parts": [
    {
      send: after({ role: "user", content: [{ type: "unknown" }] }),
      param: "input[1].content[0].type",
    },
    {
      send: after({ role: "assistant", content: [{ type: "unknown" }] }),
      param: "input[1].content[0].type",
    },
    { send: after(call, result([{ type: "unknown" }])), param: "input[2].output[0].type" },
  ],
} as const satisfies Partial<Examples<typeof responsesLosses>>;

const items = {
  "hosted-records": [
    {
      send: after(
        ...[
          "web_search_call",
          "file_search_call",
          "code_interpreter_call",
          "image_generation_call",
          "mcp_list_tools",
          "mcp_approval_request",
          "mcp_approval_response",
          "mcp_call",
        ].map((type) => ({ type, id: "x_1", status: "completed", output: null })),
      ),
    },
  ],
  "item-reference": [{ send: after({ type: "item_reference", id: "msg_1" }), param: "input[1]" }],
  compaction: ["compaction_trigger", "compaction"].map((type) => ({
    send: after({ type }),
    param: "input[1]",
  })),
  "unknown-items": [
    "computer_call",
    "computer_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "tool_search_call",
    "tool_search_output",
    "program",
    "program_output",
    "configuration_update",
    "unknown",
  ].map((type) => ({ send: after({ type, call_id: "c1" }), param: "input[1].type" })),
  "unknown-roles": ["tool", "function", "unknown"].map((role) => ({
    send: after({ role, content: "x" }),
    param: "input[1].role",
  })),
} as const satisfies Partial<Examples<typeof responsesLosses>>;

/** What the test sends for each row of the table of Responses. */
export function responsesExamples(seal: SealedReasoning): Examples<typeof responsesLosses> {
  const sealed = { type: "reasoning", encrypted_content: seal.encryptedContent };
  const answered = { role: "assistant", content: "So." };
  return {
    ...conversation,
    ...items,
    ...responsesToolExamples,
    ...responsesOptionExamples,
    reasoning: [
      {
        send: after(sealed, answered),
        arrives: arrived({ ...answered, reasoning_content: seal.text }),
      },
    ],
    "foreign-reasoning": [
      { send: after({ type: "reasoning", summary: [], content: [] }, answered) },
      { send: after({ ...sealed, encrypted_content: "gAAAAA" }, answered) },
    ],
    "open-reasoning": [
      {
        send: after(
          {
            ...sealed,
            summary: [{ type: "summary_text", text: "other" }],
            content: [{ type: "reasoning_text", text: "other" }],
          },
          answered,
        ),
      },
    ],
    "item-extras": [
      {
        send: after(
          {
            type: "message",
            role: "user",
            id: "m",
            status: "completed",
            phase: null,
            content: "x",
          },
          { ...sealed, id: "rs_1", status: "completed" },
          {
            type: "message",
            role: "assistant",
            id: "m",
            status: "completed",
            phase: "final_answer",
            content: [{ type: "output_text", text: "y", annotations: [], logprobs: [] }],
          },
          { ...call, id: "fc_1", status: "completed" },
          { ...result("z"), id: "fco_1", status: "completed" },
        ),
      },
    ],
  };
}
