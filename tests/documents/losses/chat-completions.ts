import type { chatCompletionsLosses } from "./tables/chat-completions.ts";
import type { JsonRecord } from "../../cases/files.ts";
import type { Examples } from "./example.ts";

const hi = { role: "user", content: "Hi" };

/** A body whose messages are the plain one and others. */
function after(...messages: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return { messages: [hi, ...messages] };
}

function userParts(...content: readonly JsonRecord[]): { messages: readonly JsonRecord[] } {
  return after({ role: "user", content });
}

const called = { id: "c1", type: "function", function: { name: "weather", arguments: '{"a": 1' } };
const call = { role: "assistant", content: null, tool_calls: [called] };

function result(content: unknown): JsonRecord {
  return { role: "tool", tool_call_id: "c1", content };
}

const schema = { type: "object", properties: { city: { type: "string" } } };
const weather = {
  type: "function",
  function: { name: "weather", description: "Tells it.", parameters: schema },
};
const tools = [weather];
const input = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};
const custom = { type: "custom", custom: { name: "patch", description: "Patches." } };

/** What the test sends for each row of the table of Chat Completions. */
export const chatCompletionsExamples: Examples<typeof chatCompletionsLosses> = {
  "user-text": [
    {
      send: { messages: [{ role: "user", content: "Good day" }] },
      arrives: { messages: [{ role: "user", content: "Good day" }] },
    },
    {
      send: userParts({ type: "text", text: "one " }, { type: "text", text: "two" }),
      arrives: after({ role: "user", content: "one two" }),
    },
  ],
  system: [
    {
      send: after({ role: "system", content: "Later." }),
      arrives: after({ role: "system", content: "Later." }),
    },
    {
      send: { messages: [{ role: "developer", content: [{ type: "text", text: "First." }] }, hi] },
      arrives: { messages: [{ role: "system", content: "First." }, hi] },
    },
  ],
  "leading-systems": [
    {
      send: {
        messages: [
          { role: "system", content: "First." },
          { role: "developer", content: "" },
          { role: "developer", content: "Second." },
          hi,
        ],
      },
      arrives: { messages: [{ role: "system", content: "First.\n\nSecond." }, hi] },
    },
  ],
  "assistant-text": [
    {
      send: after({ role: "assistant", content: "An answer" }),
      arrives: after({ role: "assistant", content: "An answer" }),
    },
    {
      send: after({ role: "assistant", content: [{ type: "text", text: "In parts" }] }),
      arrives: after({ role: "assistant", content: "In parts" }),
    },
  ],
  "assistants-in-a-row": [
    {
      send: after({ role: "assistant", content: "one " }, { role: "assistant", content: "two" }),
      arrives: after({ role: "assistant", content: "one two" }),
    },
  ],
  "empty-answers": [{ send: after({ role: "assistant", content: "" }) }],
  "refusal-parts": [
    {
      send: after({ role: "assistant", content: [{ type: "refusal", refusal: "No." }] }),
      arrives: after({ role: "assistant", content: "No." }),
    },
  ],
  reasoning: [
    {
      send: after({ role: "assistant", content: "So.", reasoning_content: "Because" }),
      arrives: after({ role: "assistant", content: "So.", reasoning_content: "Because" }),
    },
    {
      send: after({ role: "assistant", content: "So.", reasoning: "As it is" }),
      arrives: after({ role: "assistant", content: "So.", reasoning_content: "As it is" }),
    },
  ],
  "tool-calls": [{ send: after(call), arrives: after(call) }],
  "custom-calls": [
    {
      send: after({
        role: "assistant",
        tool_calls: [{ id: "c1", type: "custom", custom: { name: "patch", input: 'a "b"' } }],
      }),
      arrives: after({
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "c1",
            type: "function",
            function: { name: "patch", arguments: String.raw`{"input":"a \"b\""}` },
          },
        ],
      }),
    },
  ],
  "tool-results": [{ send: after(call, result("Rain.")), arrives: after(call, result("Rain.")) }],
  "result-parts": [
    {
      send: after(
        call,
        result([
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ]),
      ),
      arrives: after(call, result("a\nb")),
    },
  ],
  "result-media": [
    {
      send: after(call, result([{ type: "image_url", image_url: { url: "data:," } }])),
      arrives: after(call, result("[image left out: this service reads text only]")),
    },
    {
      send: after(call, result([{ type: "input_audio", input_audio: {} }])),
      arrives: after(call, result("[audio left out: this service reads text only]")),
    },
    {
      send: after(call, result([{ type: "file", file: {} }])),
      arrives: after(call, result("[file left out: this service reads text only]")),
    },
  ],
  media: [
    ...["image_url", "input_audio", "file", "video_url"].map((type) => ({
      send: userParts({ type, [type]: { url: "data:," } }),
      param: "messages[1].content[0]",
    })),
    {
      send: after({ role: "assistant", content: "So.", audio: { id: "a" } }),
      param: "messages[1].audio",
    },
  ],
  "unknown-parts": [
    { send: userParts({ type: "unknown" }), param: "messages[1].content[0].type" },
    {
      send: after({ role: "assistant", content: [{ type: "unknown" }] }),
      param: "messages[1].content[0].type",
    },
    { send: after(call, result([{ type: "unknown" }])), param: "messages[2].content[0].type" },
  ],
  "unknown-roles": [
    { send: after({ role: "function", name: "f", content: "x" }), param: "messages[1].role" },
    { send: after({ role: "unknown", content: "x" }), param: "messages[1].role" },
  ],
  "item-extras": [
    {
      send: after(
        {
          role: "user",
          name: "Ann",
          cache_control: { type: "ephemeral" },
          content: [
            { type: "text", text: "x", cache_control: {}, prompt_cache_breakpoint: { mode: "x" } },
          ],
        },
        { role: "assistant", name: "Bot", content: "y", refusal: null, annotations: [] },
        { role: "assistant", tool_calls: [{ ...called, index: 0 }] },
      ),
    },
  ],
  tools: [{ send: { tools }, arrives: { tools } }],
  "custom-tools": [
    {
      send: {
        tools: [
          {
            type: "custom",
            custom: {
              name: "patch",
              description: "Patches.",
              format: { type: "grammar", grammar: { syntax: "lark", definition: "start: X" } },
            },
          },
        ],
      },
      arrives: {
        tools: [
          {
            type: "function",
            function: {
              name: "patch",
              description:
                'Patches.\n\nThe text in "input" must match this Lark grammar:\nstart: X',
              parameters: input,
            },
          },
        ],
      },
    },
    {
      send: {
        tools: [
          {
            type: "custom",
            custom: {
              name: "patch",
              format: { type: "grammar", syntax: "regex", definition: "a+" },
            },
          },
        ],
      },
      arrives: {
        tools: [
          {
            type: "function",
            function: {
              name: "patch",
              description: 'The text in "input" must match this regular expression:\na+',
              parameters: input,
            },
          },
        ],
      },
    },
  ],
  "tool-strict": [
    {
      send: { tools: [{ ...weather, function: { ...weather.function, strict: true } }] },
      arrives: { tools: [{ ...weather, function: { ...weather.function, strict: true } }] },
    },
  ],
  "tool-extras": [
    {
      send: {
        tools: [
          {
            ...weather,
            cache_control: {},
            defer_loading: true,
          },
        ],
      },
    },
  ],
  "unknown-tools": [{ send: { tools: [weather, { type: "unknown" }] }, param: "tools[1].type" }],
  "tool-choice": [
    { send: { tools, tool_choice: "none" }, arrives: { tools, tool_choice: "none" } },
    { send: { tools, tool_choice: "required" }, arrives: { tools, tool_choice: "required" } },
    { send: { tools, tool_choice: "auto" }, arrives: { tools, tool_choice: null } },
  ],
  "tool-choice-one": [
    {
      send: { tools, tool_choice: { type: "function", function: { name: "weather" } } },
      arrives: { tools, tool_choice: { type: "function", function: { name: "weather" } } },
    },
  ],
  "tool-choice-custom": [
    {
      send: { tools: [custom], tool_choice: { type: "custom", custom: { name: "patch" } } },
      arrives: { tool_choice: { type: "function", function: { name: "patch" } } },
    },
  ],
  "tool-choice-without-tools": [
    { send: { tool_choice: "required" } },
    { send: { tools: [], tool_choice: "none" } },
  ],
  "allowed-tools": [
    {
      send: { tools, tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto" } } },
      param: "tool_choice",
    },
  ],
  "parallel-tool-calls": [
    { send: { tools, parallel_tool_calls: false }, arrives: { parallel_tool_calls: false } },
    { send: { tools, parallel_tool_calls: true }, arrives: { parallel_tool_calls: true } },
  ],
  temperature: [{ send: { temperature: 0.3 }, arrives: { temperature: 0.3 } }],
  "top-p": [{ send: { top_p: 0.7 }, arrives: { top_p: 0.7 } }],
  stop: [
    { send: { stop: "END" }, arrives: { stop: ["END"] } },
    { send: { stop: ["END", "STOP"] }, arrives: { stop: ["END", "STOP"] } },
  ],
  seed: [{ send: { seed: -4 }, arrives: { seed: -4 } }],
  penalties: [
    {
      send: { presence_penalty: -1.5, frequency_penalty: 0.5 },
      arrives: { presence_penalty: -1.5, frequency_penalty: 0.5 },
    },
  ],
  "reasoning-effort": [
    { send: { reasoning_effort: "high" }, arrives: { reasoning_effort: "high" } },
  ],
  "json-object": [
    {
      send: { response_format: { type: "json_object" } },
      arrives: { response_format: { type: "json_object" } },
    },
    { send: { response_format: { type: "text" } }, arrives: { response_format: null } },
  ],
  "json-schema": [
    { send: { response_format: { type: "json_schema" } }, param: "response_format.type" },
    { send: { output_format: { type: "json_schema" } }, param: "output_format.type" },
    { send: { text: { format: { type: "json_schema" } } }, param: "text.format.type" },
  ],
  "unknown-formats": [
    { send: { response_format: { type: "grammar" } }, param: "response_format.type" },
  ],
  "output-allowance": [
    { send: { max_completion_tokens: 50 }, arrives: { max_tokens: 50 } },
    { send: { max_tokens: 60 }, arrives: { max_tokens: 60 } },
    { send: { max_tokens: 70_000 }, arrives: { max_tokens: 65_536 } },
    { send: { max_tokens: 60, max_completion_tokens: 50 }, arrives: { max_tokens: 50 } },
  ],
  stream: [{ send: { stream: true }, shows: ({ type }) => type.startsWith("text/event-stream") }],
  "stream-usage": [
    {
      send: { stream: true, stream_options: { include_usage: true } },
      shows: ({ text }) => text.includes('"prompt_tokens"'),
    },
  ],
  model: [{ send: { model: "gpt-x" }, shows: ({ text }) => text.includes('"model":"gpt-x"') }],
  choices: [{ send: { n: 2 }, param: "n" }],
  "one-choice": [{ send: { n: 1 } }],
  logprobs: [
    { send: { logprobs: true }, param: "logprobs" },
    { send: { top_logprobs: 2 }, param: "top_logprobs" },
  ],
  "no-logprobs": [{ send: { logprobs: false, top_logprobs: 0 } }],
  functions: [
    { send: { functions: [{ name: "f" }] }, param: "functions" },
    { send: { function_call: "auto" }, param: "function_call" },
    {
      send: after({
        role: "assistant",
        content: "So.",
        function_call: { name: "f", arguments: "{}" },
      }),
      param: "messages[1].function_call",
    },
  ],
  "audio-answers": [
    { send: { audio: { voice: "ash", format: "wav" } }, param: "audio" },
    { send: { modalities: ["text", "audio"] }, param: "modalities" },
  ],
  "text-answers": [{ send: { modalities: ["text"] } }],
  "without-effect": [
    {
      send: {
        user: "u",
        metadata: { a: "b" },
        store: true,
        service_tier: "flex",
        prediction: { type: "content", content: "x" },
        safety_identifier: "s",
        prompt_cache_key: "k",
        prompt_cache_options: { mode: "x" },
        prompt_cache_retention: "24h",
        verbosity: "low",
        web_search_options: {},
        logit_bias: { "50256": -100 },
        moderation: {},
      },
    },
  ],
  "other-formats": [
    {
      send: {
        top_k: 3,
        thinking: { type: "enabled" },
        output_config: { effort: "high" },
        context_management: {},
      },
    },
  ],
};
