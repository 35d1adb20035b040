import type { responsesLosses } from "./tables/responses.ts";
import type { Examples } from "./example.ts";

const schema = { type: "object", properties: { city: { type: "string" } } };
const weather = { type: "function", name: "weather", description: "Tells it.", parameters: schema };
const tools = [weather];
const { type: _type, ...weatherFunction } = weather;
const toolsUpstream = [{ type: "function", function: weatherFunction }];
const input = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};
const hosted = [
  "web_search",
  "web_search_preview",
  "file_search",
  "code_interpreter",
  "image_generation",
  "mcp",
  "computer",
  "computer_use_preview",
  "local_shell",
  "shell",
  "apply_patch",
  "tool_search",
  "programmatic_tool_calling",
  "unknown",
];

/** Examples of the rows about tools. */
export const responsesToolExamples = {
  tools: [{ send: { tools }, arrives: { tools: toolsUpstream } }],
  "custom-tools": [
    ...[
      { syntax: "regex", definition: "a+" },
      { grammar: { syntax: "regex", definition: "a+" } },
    ].map((grammar) => ({
      send: {
        tools: [
          {
            type: "custom",
            name: "patch",
            description: "Patches.",
            format: { type: "grammar", ...grammar },
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
                'Patches.\n\nThe text in "input" must match this regular expression:\na+',
              parameters: input,
            },
          },
        ],
      },
    })),
  ],
  namespaces: [
    {
      send: { tools: [{ type: "namespace", name: "sky", tools }] },
      arrives: {
        tools: [{ type: "function", function: { ...weatherFunction, name: "sky__weather" } }],
      },
    },
    {
      send: { tools: [{ type: "namespace", name: "sky", description: "Of the sky.", tools }] },
      arrives: {
        tools: [
          {
            type: "function",
            function: {
              ...weatherFunction,
              name: "sky__weather",
              description: `${weatherFunction.description}\n\nAll tools sky__*: Of the sky.`,
            },
          },
        ],
      },
    },
  ],
  "additional-tools": [
    {
      send: {
        input: [
          { role: "user", content: "Hi" },
          { type: "additional_tools", tools },
        ],
      },
      arrives: { messages: [{ role: "user", content: "Hi" }], tools: toolsUpstream },
    },
  ],
  "tool-strict": [
    {
      send: { tools: [{ ...weather, strict: true }] },
      arrives: {
        tools: [{ type: "function", function: { ...weatherFunction, strict: true } }],
      },
    },
  ],
  "tool-extras": [
    {
      send: {
        tools: [{ ...weather, defer_loading: true, cache_control: {} }],
      },
    },
  ],
  "hosted-tools": [{ send: { tools: [weather, ...hosted.map((type) => ({ type }))] } }],
  "tool-choice": [
    {
      send: { tools, tool_choice: "none" },
      arrives: { tools: toolsUpstream, tool_choice: "none" },
    },
    { send: { tools, tool_choice: "required" }, arrives: { tool_choice: "required" } },
    { send: { tools, tool_choice: "auto" }, arrives: { tool_choice: null } },
  ],
  "tool-choice-one": [
    {
      send: { tools, tool_choice: { type: "function", name: "weather" } },
      arrives: { tool_choice: { type: "function", function: { name: "weather" } } },
    },
  ],
  "tool-choice-namespaced": [
    {
      send: {
        tools: [{ type: "namespace", name: "sky", tools }],
        tool_choice: { type: "function", name: "weather", namespace: "sky" },
      },
      arrives: { tool_choice: { type: "function", function: { name: "sky__weather" } } },
    },
  ],
  "tool-choice-without-tools": [
    { send: { tool_choice: "required" } },
    { send: { tools: [{ type: "web_search" }], tool_choice: "required" } },
  ],
  "tool-choice-hosted": [
    { send: { tools, tool_choice: { type: "web_search_preview" } }, param: "tool_choice" },
  ],
  "allowed-tools": [
    {
      send: { tools, tool_choice: { type: "allowed_tools", mode: "auto", tools: [] } },
      param: "tool_choice",
    },
  ],
  "parallel-tool-calls": [
    { send: { tools, parallel_tool_calls: false }, arrives: { parallel_tool_calls: false } },
  ],
} as const satisfies Partial<Examples<typeof responsesLosses>>;

/** Examples of the rows about everything besides the conversation. */
export const responsesOptionExamples = {
  temperature: [{ send: { temperature: 0.3 }, arrives: { temperature: 0.3 } }],
  "top-p": [{ send: { top_p: 0.7 }, arrives: { top_p: 0.7 } }],
  "reasoning-effort": [
    { send: { reasoning: { effort: "high" } }, arrives: { reasoning_effort: "high" } },
  ],
  "reasoning-summary": [
    {
      send: { reasoning: { summary: "auto" } },
      shows: ({ text }) => text.includes('"type":"summary_text"'),
    },
  ],
  include: [
    {
      send: { include: ["reasoning.encrypted_content"] },
      shows: ({ text }) => text.includes('"encrypted_content":"'),
    },
  ],
  "include-others": [{ send: { include: ["file_search_call.results"] } }],
  "json-object": [
    {
      send: { text: { format: { type: "json_object" } } },
      arrives: { response_format: { type: "json_object" } },
    },
  ],
  "json-schema": [
    { send: { text: { format: { type: "json_schema" } } }, param: "text.format.type" },
    { send: { response_format: { type: "json_schema" } }, param: "response_format.type" },
    { send: { output_format: { type: "json_schema" } }, param: "output_format.type" },
  ],
  "unknown-formats": [
    { send: { text: { format: { type: "grammar" } } }, param: "text.format.type" },
  ],
  verbosity: [{ send: { text: { verbosity: "low" } } }],
  "output-allowance": [
    { send: { max_output_tokens: 50 }, arrives: { max_tokens: 50 } },
    { send: { max_output_tokens: 70_000 }, arrives: { max_tokens: 65_536 } },
  ],
  stream: [{ send: { stream: true }, shows: ({ type }) => type.startsWith("text/event-stream") }],
  model: [{ send: { model: "gpt-x" }, shows: ({ text }) => text.includes('"model":"gpt-x"') }],
  echoed: [
    { send: { metadata: { a: "b" } }, shows: ({ text }) => text.includes('"metadata":{"a":"b"}') },
    {
      send: { prompt_cache_key: "k" },
      shows: ({ text }) => text.includes('"prompt_cache_key":"k"'),
    },
  ],
  "stored-state": [
    { send: { previous_response_id: "resp_1" }, param: "previous_response_id" },
    { send: { conversation: "conv_1" }, param: "conversation" },
  ],
  prompt: [{ send: { prompt: { id: "p" } }, param: "prompt" }],
  background: [{ send: { background: true }, param: "background" }],
  "no-background": [{ send: { background: false } }],
  "without-effect": [
    {
      send: {
        user: "u",
        safety_identifier: "s",
        client_metadata: { a: "b" },
        prompt_cache_options: {},
        prompt_cache_retention: "24h",
        service_tier: "flex",
        store: true,
        truncation: "auto",
        max_tool_calls: 3,
        top_logprobs: 3,
        stream_options: { include_obfuscation: true },
        context_management: [],
        moderation: {},
        image: {},
        access_programs: [],
      },
    },
  ],
  "other-formats": [
    {
      send: {
        stop: ["x"],
        seed: 3,
        presence_penalty: 1,
        frequency_penalty: 1,
        top_k: 3,
        thinking: {},
        output_config: {},
      },
    },
  ],
} as const satisfies Partial<Examples<typeof responsesLosses>>;
