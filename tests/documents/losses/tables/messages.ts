import { carried, converted, ignored, type Losses, refused, served } from "./format-losses.ts";

/** What becomes of each field and each kind of content of a Messages request. */
export const messagesLosses = {
  "user-text": carried(
    "messages[user].content messages[user].content[text].text",
    "text blocks are joined without separator",
  ),
  system: carried(
    "system system[text].text messages[system].content messages[system].content[text].text",
    "a later one stays where it is, its blocks joined",
  ),
  "leading-systems": converted(
    "system[text].text messages[system].content",
    "one system message, with a blank line between the texts; empty ones vanish",
    "several at the beginning",
  ),
  "billing-header": ignored(
    "system[text]",
    "it changes with every session and would defeat the engine's prefix cache",
    "the text begins `x-anthropic-billing-header:`",
  ),
  "assistant-text": carried(
    "messages[assistant].content messages[assistant].content[text].text",
    "text blocks in a row are joined",
  ),
  "assistants-in-a-row": converted(
    "messages[assistant].content",
    "one answer",
    "several assistant messages in a row",
  ),
  "empty-answers": ignored(
    "messages[assistant]",
    "an answer that said nothing is left out",
    "without text, reasoning and calls",
  ),
  reasoning: carried(
    "messages[assistant].content[thinking].thinking",
    "the signature stays here",
    "as this service sent it to this account",
  ),
  "foreign-reasoning": ignored(
    "messages[assistant].content[thinking] messages[assistant].content[thinking].signature messages[assistant].content[redacted_thinking]",
    "dropped without an error",
    "without our signature, or changed",
  ),
  "tool-calls": carried(
    "messages[assistant].content[tool_use].id messages[assistant].content[tool_use].name",
    "in the order of the blocks",
  ),
  "tool-input": converted(
    "messages[assistant].content[tool_use].input",
    "JSON text; any JSON value, `{}` where there is none",
  ),
  "tool-results": carried(
    "messages[user].content[tool_result].tool_use_id messages[user].content[tool_result].content",
    "an earlier call must have the id; without content the empty text",
  ),
  "texts-beside-results": converted(
    "messages[user].content[text].text",
    "the results first, then one user message",
    "beside results",
  ),
  "result-parts": converted(
    "messages[user].content[tool_result].content[text].text",
    "joined by a line feed",
  ),
  "result-error": converted(
    "messages[user].content[tool_result].is_error",
    "the text goes on without it; without text it becomes `error`",
    "`true`",
  ),
  "tool-reference": converted(
    "messages[user].content[tool_result].content[tool_reference].tool_name",
    "`Tool available: NAME`",
  ),
  "search-result": converted(
    "messages[user].content[tool_result].content[search_result].title messages[user].content[tool_result].content[search_result].source messages[user].content[tool_result].content[search_result].content[text].text",
    "title and source where they are texts, and the texts, a line each",
  ),
  "result-media": converted(
    "messages[user].content[tool_result].content[image] messages[user].content[tool_result].content[document]",
    "a text that says what was left out",
  ),
  "tool-changes": converted(
    "messages[system].content[tool_addition].tool.name messages[system].content[tool_removal].tool.name",
    "a line that names the tool; all of `tools` is offered from the beginning",
  ),
  "mcp-tool-changes": ignored(
    "messages[system].content[tool_addition] messages[system].content[tool_removal]",
    "tools of MCP servers are not offered",
    "of an MCP server's tools",
  ),
  "tool-definitions": refused(
    "messages[system].content[tool_addition] messages[system].content[tool_removal]",
    "put every tool into `tools`",
    "with a `tool_definition`",
  ),
  media: refused("messages[user].content[image] messages[user].content[document]", "send text"),
  "unknown-parts": refused(
    "messages[user].content[search_result] messages[user].content[container_upload] messages[user].content[tool_addition] messages[user].content[tool_removal] messages[user].content[*] messages[system].content[*] messages[user].content[tool_result].content[browser_state] messages[user].content[tool_result].content[*]",
    "send text",
  ),
  "hosted-records": refused(
    "messages[assistant].content[server_tool_use] messages[assistant].content[web_search_tool_result] messages[assistant].content[web_fetch_tool_result] messages[assistant].content[code_execution_tool_result] messages[assistant].content[bash_code_execution_tool_result] messages[assistant].content[text_editor_code_execution_tool_result] messages[assistant].content[tool_search_tool_result] messages[assistant].content[advisor_tool_result] messages[assistant].content[mcp_tool_use] messages[assistant].content[mcp_tool_result] messages[assistant].content[mcp_tool_listing] messages[assistant].content[compaction] messages[assistant].content[fallback] messages[assistant].content[*]",
    "records of tools that another service ran; leave them out",
  ),
  "unknown-roles": refused(
    "messages[tool] messages[developer] messages[*]",
    "results are blocks of a user message",
  ),
  "item-extras": ignored(
    "system[text].cache_control system[text].citations messages[user].content[text].cache_control messages[assistant].content[text].citations messages[assistant].content[tool_use].cache_control messages[assistant].content[tool_use].caller messages[user].content[tool_result].cache_control messages[user].content[tool_result].content[text].cache_control",
    "and every other field of a message or block",
  ),
  tools: carried(
    "tools[].name tools[].description tools[].input_schema",
    "of the type `custom` or none; without `input_schema` a tool has none",
  ),
  "tool-strict": carried(
    "tools[].strict",
    "for engines that read it, see below; the service promises nothing, and any other value is ignored",
    "`true`",
  ),
  "tool-extras": ignored(
    "tools[].cache_control tools[].defer_loading tools[].input_examples tools[].eager_input_streaming tools[].allowed_callers",
    "and every other field of a tool",
  ),
  "hosted-tools": ignored(
    "tools[web_search_20250305] tools[web_fetch_20250910] tools[code_execution_20250825] tools[bash_20250124] tools[text_editor_20250728] tools[memory_20250818] tools[computer_20250124] tools[tool_search_tool_regex] tools[tool_search_tool_bm25] tools[mcp_toolset]",
    "and every type that ends with a date: left out of what the model sees",
  ),
  "unknown-tools": refused("tools[*]", "use `custom` or no type", "of any other type"),
  "tool-choice-none": carried("tool_choice", "", "of the type `none`"),
  "tool-choice": converted(
    "tool_choice",
    "`required`; `auto` is what engines do by themselves, it is not sent",
    "of the type `any`",
  ),
  "tool-choice-one": carried("tool_choice.name", "the tool must be among `tools`"),
  "tool-choice-without-tools": ignored(
    "tool_choice",
    "there is nothing to choose",
    "no name, without tools or with hosted ones alone",
  ),
  "tool-choice-hosted": refused(
    "tool_choice",
    "choose a tool that you run",
    "the name of a hosted tool",
  ),
  "parallel-tool-calls": converted(
    "tool_choice.disable_parallel_tool_use",
    "`parallel_tool_calls`, the other way round, where there are tools",
  ),
  temperature: carried("temperature", "0 to 2"),
  "top-p": carried("top_p", "0 to 1"),
  "top-k": carried("top_k", "a whole number from 0; see below"),
  stop: carried("stop_sequences", "a list"),
  "output-allowance": converted(
    "max_tokens",
    "`max_tokens`, at most 65,536 and what the credit pays for; may be left out",
  ),
  stream: served("stream", "the deployment is always asked for a stream"),
  model: served("model", "every name leads to the one model; the answer repeats it"),
  thread: refused("thread", "send the whole history"),
  "json-schema": refused(
    "output_format response_format text.format",
    "ask for JSON in a message, with the schema",
    "of the type `json_schema`",
  ),
  "other-output-formats": ignored(
    "output_format response_format",
    "answers are text",
    "of any other type",
  ),
  "without-effect": ignored(
    "metadata thinking output_config context_management mcp_servers container betas service_tier cache_control safeguards inference_geo speed billing_policy compaction diagnostics fallback_credit_token fallbacks user_profile_id workspace_id",
    "an effort or a schema in `output_config` too; and every field that is not in this table",
  ),
  "other-formats": ignored("reasoning_effort seed user", "no field of this format"),
} satisfies Losses;
