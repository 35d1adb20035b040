import type { messagesLosses } from "./tables/messages.ts";
import type { Examples } from "./example.ts";

const schema = { type: "object", properties: { city: { type: "string" } } };
const weather = { name: "weather", description: "Tells it.", input_schema: schema };
const tools = [weather];
const toolsUpstream = [
  {
    type: "function",
    function: { name: "weather", description: "Tells it.", parameters: schema },
  },
];

/** Examples of the rows about tools. */
export const messagesToolExamples = {
  tools: [
    { send: { tools }, arrives: { tools: toolsUpstream } },
    { send: { tools: [{ type: "custom", ...weather }] }, arrives: { tools: toolsUpstream } },
  ],
  "tool-strict": [
    {
      send: { tools: [{ ...weather, strict: true }] },
      arrives: {
        tools: toolsUpstream.map((tool) => ({
          ...tool,
          function: { ...tool.function, strict: true },
        })),
      },
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
            input_examples: [],
            eager_input_streaming: true,
            allowed_callers: ["direct"],
          },
        ],
      },
    },
  ],
  "hosted-tools": [
    {
      send: {
        tools: [
          weather,
          ...[
            "web_search_20250305",
            "web_fetch_20250910",
            "code_execution_20250825",
            "bash_20250124",
            "text_editor_20250728",
            "memory_20250818",
            "computer_20250124",
            "tool_search_tool_regex",
            "tool_search_tool_bm25",
            "mcp_toolset",
          ].map((type) => ({ type, name: `hosted-${type}` })),
        ],
      },
    },
  ],
  "unknown-tools": [{ send: { tools: [weather, { type: "unknown" }] }, param: "tools[1].type" }],
  "tool-choice-none": [
    {
      send: { tools, tool_choice: { type: "none" } },
      arrives: { tools: toolsUpstream, tool_choice: "none" },
    },
  ],
  "tool-choice": [
    {
      send: { tools, tool_choice: { type: "any" } },
      arrives: { tools: toolsUpstream, tool_choice: "required" },
    },
    { send: { tools, tool_choice: { type: "auto" } }, arrives: { tool_choice: null } },
  ],
  "tool-choice-one": [
    {
      send: { tools, tool_choice: { type: "tool", name: "weather" } },
      arrives: { tool_choice: { type: "function", function: { name: "weather" } } },
    },
  ],
  "tool-choice-without-tools": [
    { send: { tool_choice: { type: "any" } } },
    {
      send: { tools: [{ type: "web_search_20250305", name: "s" }], tool_choice: { type: "any" } },
    },
  ],
  "tool-choice-hosted": [
    {
      send: {
        tools: [weather, { type: "web_search_20250305", name: "s" }],
        tool_choice: { type: "tool", name: "s" },
      },
      param: "tool_choice",
    },
  ],
  "parallel-tool-calls": [
    {
      send: { tools, tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      arrives: { parallel_tool_calls: false, tool_choice: null },
    },
    {
      send: { tools, tool_choice: { type: "auto", disable_parallel_tool_use: false } },
      arrives: { parallel_tool_calls: true },
    },
  ],
} as const satisfies Partial<Examples<typeof messagesLosses>>;

/** Examples of the rows about everything besides the conversation. */
export const messagesOptionExamples = {
  temperature: [{ send: { temperature: 0.3 }, arrives: { temperature: 0.3 } }],
  "top-p": [{ send: { top_p: 0.7 }, arrives: { top_p: 0.7 } }],
  "top-k": [{ send: { top_k: 7 }, arrives: { top_k: 7 } }],
  stop: [{ send: { stop_sequences: ["END"] }, arrives: { stop: ["END"] } }],
  "output-allowance": [
    { send: { max_tokens: 50 }, arrives: { max_tokens: 50 } },
    { send: { max_tokens: 70_000 }, arrives: { max_tokens: 65_536 } },
  ],
  stream: [{ send: { stream: true }, shows: ({ type }) => type.startsWith("text/event-stream") }],
  model: [{ send: { model: "claude-x" }, shows: ({ text }) => text.includes('"claude-x"') }],
  thread: [{ send: { thread: { id: "t" } }, param: "thread" }],
  "json-schema": [
    { send: { output_format: { type: "json_schema" } }, param: "output_format.type" },
    { send: { response_format: { type: "json_schema" } }, param: "response_format.type" },
    { send: { text: { format: { type: "json_schema" } } }, param: "text.format.type" },
  ],
  "other-output-formats": [
    { send: { output_format: { type: "text" }, response_format: { type: "json_object" } } },
  ],
  "without-effect": [
    {
      send: {
        metadata: { user_id: "u" },
        thinking: { type: "enabled", budget_tokens: 1024 },
        output_config: { effort: "high", format: { type: "json_schema", schema } },
        context_management: { edits: [] },
        mcp_servers: [],
        container: "c",
        betas: ["x"],
        service_tier: "auto",
        cache_control: { type: "ephemeral" },
        safeguards: [{}],
        inference_geo: "eu",
        speed: "fast",
        billing_policy: {},
        compaction: {},
        diagnostics: {},
        fallback_credit_token: "x",
        fallbacks: [],
        user_profile_id: "u",
        workspace_id: "w",
      },
    },
  ],
  "other-formats": [{ send: { reasoning_effort: "high", seed: 3, user: "u" } }],
} as const satisfies Partial<Examples<typeof messagesLosses>>;
