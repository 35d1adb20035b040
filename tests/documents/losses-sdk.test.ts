import type {
  BetaContentBlockParam,
  BetaToolResultBlockParam,
  BetaToolUnion,
  MessageCreateParams as BetaMessageCreateParams,
} from "@anthropic-ai/sdk/resources/beta/messages/messages";
import type { MessageCreateParams } from "@anthropic-ai/sdk/resources/messages/messages";
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParams,
  ChatCompletionTool,
} from "openai/resources/chat/completions/completions";
import type {
  ResponseCreateParams,
  ResponseInputItem,
  Tool,
} from "openai/resources/responses/responses";
import { describe, expect, it } from "vitest";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { formatLosses } from "./losses/formats.ts";
import { leadsTo } from "./losses/places.ts";

/** One line for each name of the SDK's type: one more, or one less, does not compile. */
type Every<Name extends string> = Readonly<Record<Name, true>>;

const chatFields: Every<keyof ChatCompletionCreateParams> = {
  messages: true,
  model: true,
  audio: true,
  frequency_penalty: true,
  function_call: true,
  functions: true,
  logit_bias: true,
  logprobs: true,
  max_completion_tokens: true,
  max_tokens: true,
  metadata: true,
  modalities: true,
  moderation: true,
  n: true,
  parallel_tool_calls: true,
  prediction: true,
  presence_penalty: true,
  prompt_cache_key: true,
  prompt_cache_options: true,
  prompt_cache_retention: true,
  reasoning_effort: true,
  response_format: true,
  safety_identifier: true,
  seed: true,
  service_tier: true,
  stop: true,
  store: true,
  stream: true,
  stream_options: true,
  temperature: true,
  tool_choice: true,
  tools: true,
  top_logprobs: true,
  top_p: true,
  user: true,
  verbosity: true,
  web_search_options: true,
};

const chatParts: Every<ChatCompletionContentPart["type"]> = {
  file: true,
  image_url: true,
  input_audio: true,
  text: true,
};

const chatTools: Every<ChatCompletionTool["type"]> = {
  custom: true,
  function: true,
};

const responsesFields: Every<keyof ResponseCreateParams> = {
  access_programs: true,
  background: true,
  context_management: true,
  conversation: true,
  image: true,
  include: true,
  input: true,
  instructions: true,
  max_output_tokens: true,
  max_tool_calls: true,
  metadata: true,
  model: true,
  moderation: true,
  parallel_tool_calls: true,
  previous_response_id: true,
  prompt: true,
  prompt_cache_key: true,
  prompt_cache_options: true,
  prompt_cache_retention: true,
  reasoning: true,
  safety_identifier: true,
  service_tier: true,
  store: true,
  stream: true,
  stream_options: true,
  temperature: true,
  text: true,
  tool_choice: true,
  tools: true,
  top_logprobs: true,
  top_p: true,
  truncation: true,
  user: true,
};

const responsesItems: Every<NonNullable<ResponseInputItem["type"]>> = {
  additional_tools: true,
  apply_patch_call: true,
  apply_patch_call_output: true,
  code_interpreter_call: true,
  compaction: true,
  compaction_trigger: true,
  computer_call: true,
  computer_call_output: true,
  configuration_update: true,
  custom_tool_call: true,
  custom_tool_call_output: true,
  file_search_call: true,
  function_call: true,
  function_call_output: true,
  image_generation_call: true,
  item_reference: true,
  local_shell_call: true,
  local_shell_call_output: true,
  mcp_approval_request: true,
  mcp_approval_response: true,
  mcp_call: true,
  mcp_list_tools: true,
  message: true,
  program: true,
  program_output: true,
  reasoning: true,
  shell_call: true,
  shell_call_output: true,
  tool_search_call: true,
  tool_search_output: true,
  web_search_call: true,
};

const responsesTools: Every<Tool["type"]> = {
  apply_patch: true,
  code_interpreter: true,
  computer: true,
  computer_use_preview: true,
  custom: true,
  file_search: true,
  function: true,
  image_generation: true,
  local_shell: true,
  mcp: true,
  namespace: true,
  programmatic_tool_calling: true,
  shell: true,
  tool_search: true,
  web_search: true,
  web_search_2025_08_26: true,
  web_search_preview: true,
  web_search_preview_2025_03_11: true,
};

const messagesFields: Every<keyof BetaMessageCreateParams | keyof MessageCreateParams> = {
  max_tokens: true,
  messages: true,
  model: true,
  billing_policy: true,
  cache_control: true,
  compaction: true,
  container: true,
  context_management: true,
  diagnostics: true,
  fallback_credit_token: true,
  fallbacks: true,
  inference_geo: true,
  mcp_servers: true,
  metadata: true,
  output_config: true,
  output_format: true,
  service_tier: true,
  speed: true,
  stop_sequences: true,
  stream: true,
  system: true,
  thinking: true,
  thread: true,
  tool_choice: true,
  tools: true,
  betas: true,
  user_profile_id: true,
  workspace_id: true,
};

const messagesBlocks: Every<BetaContentBlockParam["type"]> = {
  advisor_tool_result: true,
  bash_code_execution_tool_result: true,
  code_execution_tool_result: true,
  compaction: true,
  container_upload: true,
  document: true,
  fallback: true,
  image: true,
  mcp_tool_listing: true,
  mcp_tool_result: true,
  mcp_tool_use: true,
  redacted_thinking: true,
  search_result: true,
  server_tool_use: true,
  text: true,
  text_editor_code_execution_tool_result: true,
  thinking: true,
  tool_addition: true,
  tool_removal: true,
  tool_result: true,
  tool_search_tool_result: true,
  tool_use: true,
  web_fetch_tool_result: true,
  web_search_tool_result: true,
};

const resultBlocks: Every<
  Exclude<BetaToolResultBlockParam["content"], string | undefined>[number]["type"]
> = {
  browser_state: true,
  document: true,
  image: true,
  search_result: true,
  text: true,
  tool_reference: true,
};

const messagesTools: Every<NonNullable<BetaToolUnion["type"]>> = {
  advisor_20260301: true,
  bash_20241022: true,
  bash_20250124: true,
  browser_toolset_20260801: true,
  code_execution_20250522: true,
  code_execution_20250825: true,
  code_execution_20260120: true,
  code_execution_20260521: true,
  computer_20241022: true,
  computer_20250124: true,
  computer_20251124: true,
  computer_toolset_20260801: true,
  custom: true,
  mcp_toolset: true,
  memory_20250818: true,
  text_editor_20241022: true,
  text_editor_20250124: true,
  text_editor_20250429: true,
  text_editor_20250728: true,
  tool_search_tool_bm25: true,
  tool_search_tool_bm25_20251119: true,
  tool_search_tool_regex: true,
  tool_search_tool_regex_20251119: true,
  web_fetch_20250910: true,
  web_fetch_20260209: true,
  web_fetch_20260309: true,
  web_fetch_20260318: true,
  web_search_20250305: true,
  web_search_20260209: true,
  web_search_20260318: true,
};

/** Names of one of the SDK's types, and where in a body they stand: `*` is the name. */
const named: readonly (readonly [WireFormatName, readonly string[], Every<string>])[] = [
  ["chat-completions", ["*"], chatFields],
  ["chat-completions", ["messages[user].content[*]"], chatParts],
  ["chat-completions", ["tools[*]"], chatTools],
  ["responses", ["*"], responsesFields],
  ["responses", ["input[*]"], responsesItems],
  ["responses", ["tools[*]"], responsesTools],
  ["messages", ["*"], messagesFields],
  [
    "messages",
    ["user", "assistant", "system"].map((role) => `messages[${role}].content[*]`),
    messagesBlocks,
  ],
  ["messages", ["messages[user].content[tool_result].content[*]"], resultBlocks],
  ["messages", ["tools[*]"], messagesTools],
];

// A message is known by its role, a tool without a type is custom, a date at the end of a type stands for all dates.
const alike = /^input\[message\]$|^tools\[custom\]$|_(?:\d{8}|\d{4}_\d{2}_\d{2})\]$/u;

describe("docs/losses.md", () => {
  it.each(named)("tells of every name that the SDK has: %s, %j", (format, places, names) => {
    const told = Object.values(formatLosses[format]).flatMap(({ fields }) => fields);
    const ownNames = told.filter((field) => !field.endsWith("[*]") && !field.includes("[]"));
    const silent = Object.keys(names).filter((name) =>
      places
        .map((place) => place.replace("*", name))
        .every((place) => !alike.test(place) && !ownNames.some((field) => leadsTo(place, field))),
    );
    expect(Object.keys(names).length).toBeGreaterThan(1);
    expect(silent).toEqual([]);
  });
});
