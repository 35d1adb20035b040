import { carried, converted, ignored, type Losses, refused, served } from "./format-losses.ts";

/** What becomes of each field and each kind of content of a Responses request. */
export const responsesLosses = {
  "user-text": carried(
    "input input[user].content input[user].content[input_text|output_text|text].text",
    "a string is one user message; text parts are joined without separator",
  ),
  system: carried(
    "instructions input[system|developer].content input[system|developer].content[input_text|output_text|text].text",
    "as `system`; a later one stays where it is",
  ),
  "leading-systems": converted(
    "instructions input[system|developer].content",
    "one system message, with a blank line between the texts; empty ones vanish",
    "several at the beginning",
  ),
  "assistant-text": carried(
    "input[assistant].content input[assistant].content[input_text|output_text|text].text",
    "text parts are joined; `null` is the empty text",
  ),
  "assistants-in-a-row": converted(
    "input[assistant].content",
    "with its reasoning and its calls, one answer",
    "several items of one answer",
  ),
  "empty-answers": ignored(
    "input[assistant]",
    "an answer that said nothing is left out",
    "without text",
  ),
  "refusal-parts": converted(
    "input[user|assistant|system|developer].content[refusal].refusal",
    "text",
  ),
  reasoning: converted(
    "input[reasoning].encrypted_content",
    "the text that is sealed in it",
    "as this service sent it to this account",
  ),
  "foreign-reasoning": ignored(
    "input[reasoning]",
    "dropped without an error",
    "without a seal, or changed",
  ),
  "open-reasoning": ignored(
    "input[reasoning].summary input[reasoning].content",
    "only the seal counts",
  ),
  "tool-calls": carried(
    "input[function_call].call_id input[function_call].name input[function_call].arguments",
    "arguments byte for byte, also when they are no JSON",
  ),
  "custom-calls": converted(
    "input[custom_tool_call].call_id input[custom_tool_call].name input[custom_tool_call].input",
    'a function call with the arguments `{"input": ...}`',
  ),
  "namespaced-calls": converted(
    "input[function_call].namespace input[custom_tool_call].namespace",
    "`namespace__name`",
  ),
  "tool-results": carried(
    "input[function_call_output|custom_tool_call_output].call_id input[function_call_output|custom_tool_call_output].output",
    "an earlier call must have the id",
  ),
  "result-parts": converted(
    "input[function_call_output|custom_tool_call_output].output[input_text|output_text|text].text input[function_call_output|custom_tool_call_output].output[refusal].refusal",
    "joined by a line feed",
  ),
  "result-media": converted(
    "input[function_call_output].output[input_image] input[function_call_output].output[input_file] input[function_call_output].output[input_audio]",
    "a text that says what was left out",
  ),
  media: refused(
    "input[user].content[input_image] input[user].content[input_file] input[user].content[input_audio]",
    "send text",
  ),
  "unknown-parts": refused(
    "input[user].content[*] input[assistant].content[*] input[function_call_output].output[*]",
    "send text parts",
  ),
  "hosted-records": ignored(
    "input[web_search_call] input[file_search_call] input[code_interpreter_call] input[image_generation_call] input[mcp_list_tools] input[mcp_approval_request] input[mcp_approval_response] input[mcp_call]",
    "records of tools that another service ran are left out as their tools are",
  ),
  "item-reference": refused("input[item_reference]", "send the items themselves"),
  compaction: refused(
    "input[compaction_trigger] input[compaction]",
    "ask for a summary in an ordinary request",
  ),
  "unknown-items": refused(
    "input[computer_call] input[computer_call_output] input[local_shell_call] input[local_shell_call_output] input[shell_call] input[shell_call_output] input[apply_patch_call] input[apply_patch_call_output] input[tool_search_call] input[tool_search_output] input[program] input[program_output] input[configuration_update] input[*]",
    "an item of no known kind has no words for the model",
  ),
  "unknown-roles": refused(
    "input[tool] input[function] input[*]",
    "a result is an item `function_call_output`",
    "an item without a type, of another role",
  ),
  "item-extras": ignored(
    "input[user].id input[user].status input[user].phase input[assistant].id input[assistant].status input[assistant].phase input[assistant].content[output_text].annotations input[assistant].content[output_text].logprobs input[function_call].id input[function_call].status input[function_call_output].id input[function_call_output].status input[reasoning].id input[reasoning].status",
    "and every other field of an item or part",
  ),
  tools: carried(
    "tools[function].name tools[function].description tools[function].parameters",
    "without `parameters` a tool has none",
  ),
  "custom-tools": converted(
    "tools[custom].name tools[custom].description tools[custom].format.syntax tools[custom].format.definition tools[custom].format.grammar.syntax tools[custom].format.grammar.definition",
    "a function with one string `input`; the grammar is written into the description, nothing enforces it",
  ),
  namespaces: converted(
    "tools[namespace].name tools[namespace].tools tools[namespace].description",
    "each tool inside is offered as `namespace__name`, the first with the namespace's description",
  ),
  "additional-tools": converted("input[additional_tools].tools", "they join `tools`"),
  "tool-strict": carried(
    "tools[function].strict",
    "for engines that read it, see below; the service promises nothing, and any other value is ignored; the answer repeats the tools",
    "`true`",
  ),
  "tool-extras": ignored(
    "tools[function].defer_loading tools[function].cache_control",
    "and every other field of a tool",
  ),
  "hosted-tools": ignored(
    "tools[web_search] tools[web_search_preview] tools[file_search] tools[code_interpreter] tools[image_generation] tools[mcp] tools[computer] tools[computer_use_preview] tools[local_shell] tools[shell] tools[apply_patch] tools[tool_search] tools[programmatic_tool_calling] tools[*]",
    "tools that would run inside a service are left out of what the model sees",
  ),
  "tool-choice": carried(
    "tool_choice",
    "`auto` is what engines do by themselves, it is not sent",
    "`none` or `required`",
  ),
  "tool-choice-one": carried("tool_choice.name", "the tool must be among `tools`"),
  "tool-choice-namespaced": converted("tool_choice.namespace", "`namespace__name`"),
  "tool-choice-without-tools": ignored(
    "tool_choice",
    "there is nothing to choose",
    "a word, without tools or with hosted ones alone",
  ),
  "tool-choice-hosted": refused(
    "tool_choice",
    "choose a tool that you run",
    "of the type of a hosted tool",
  ),
  "allowed-tools": refused("tool_choice", "list only those tools", "of the type `allowed_tools`"),
  "parallel-tool-calls": carried("parallel_tool_calls", "where there are tools"),
  temperature: carried("temperature", "0 to 2"),
  "top-p": carried("top_p", "0 to 1"),
  "reasoning-effort": carried("reasoning.effort", "in the engine's words, see below"),
  "reasoning-summary": served(
    "reasoning.summary",
    "the answer's reasoning comes as a summary; it is the whole text",
  ),
  include: served(
    "include",
    "reasoning comes sealed, to be sent back",
    "with `reasoning.encrypted_content`",
  ),
  "include-others": ignored("include", "there is nothing to include", "other words"),
  "json-object": carried(
    "text.format",
    "`text` is what comes without it",
    "of the type `json_object`",
  ),
  "json-schema": refused(
    "text.format response_format output_format",
    "ask for `json_object`, with the schema in a message",
    "of the type `json_schema`",
  ),
  "unknown-formats": refused(
    "text.format",
    "`text` or `json_object`",
    "of any type but `text`, `json_object`",
  ),
  verbosity: ignored("text.verbosity", "ask for it in words"),
  "output-allowance": converted(
    "max_output_tokens",
    "`max_tokens`, at most 65,536 and what the credit pays for",
  ),
  stream: served("stream", "the deployment is always asked for a stream"),
  model: served("model", "every name leads to the one model; the answer repeats it"),
  echoed: served("metadata prompt_cache_key", "the answer repeats it"),
  "stored-state": refused(
    "previous_response_id conversation",
    "nothing is stored: send the whole history",
  ),
  prompt: refused("prompt", "send its text"),
  background: refused("background", "stream the answer", "`true`"),
  "no-background": ignored("background", "answers come at once", "`false`"),
  "without-effect": ignored(
    "user safety_identifier client_metadata prompt_cache_options prompt_cache_retention service_tier store truncation max_tool_calls top_logprobs stream_options context_management moderation image access_programs",
    "nothing is stored or cut, the answer says so; and every field that is not in this table",
  ),
  "other-formats": ignored(
    "stop seed presence_penalty frequency_penalty top_k thinking output_config",
    "no field of this format",
  ),
} satisfies Losses;
