import { carried, converted, ignored, type Losses, refused, served } from "./format-losses.ts";

/** What becomes of each field and each kind of content of a Chat Completions request. */
export const chatCompletionsLosses = {
  "user-text": carried(
    "messages[user].content messages[user].content[text].text",
    "text parts are joined without separator",
  ),
  system: carried(
    "messages[system|developer].content messages[system|developer].content[text].text",
    "as `system`; a later one stays where it is",
  ),
  "leading-systems": converted(
    "messages[system|developer].content",
    "one system message, with a blank line between the texts; empty ones vanish",
    "several at the beginning",
  ),
  "assistant-text": carried(
    "messages[assistant].content messages[assistant].content[text].text",
    "text parts are joined; `null` or nothing is the empty text",
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
  "refusal-parts": converted("messages[assistant].content[refusal].refusal", "text"),
  reasoning: carried(
    "messages[assistant].reasoning_content messages[assistant].reasoning",
    "taken as it comes; where both are there, the first counts",
  ),
  "tool-calls": carried(
    "messages[assistant].tool_calls[function].id messages[assistant].tool_calls[function].function.name messages[assistant].tool_calls[function].function.arguments",
    "arguments byte for byte, also when they are no JSON",
  ),
  "custom-calls": converted(
    "messages[assistant].tool_calls[custom].id messages[assistant].tool_calls[custom].custom.name messages[assistant].tool_calls[custom].custom.input",
    'a function call with the arguments `{"input": ...}`',
  ),
  "tool-results": carried(
    "messages[tool].tool_call_id messages[tool].content",
    "an earlier call must have the id",
  ),
  "result-parts": converted("messages[tool].content[text].text", "joined by a line feed"),
  "result-media": converted(
    "messages[tool].content[image_url] messages[tool].content[input_audio] messages[tool].content[file]",
    "a text that says what was left out",
  ),
  media: refused(
    "messages[user].content[image_url] messages[user].content[input_audio] messages[user].content[file] messages[user].content[video_url] messages[assistant].audio",
    "send text",
  ),
  "unknown-parts": refused(
    "messages[user].content[*] messages[assistant].content[*] messages[tool].content[*]",
    "send text parts",
  ),
  "unknown-roles": refused("messages[function] messages[*]", "results have the role `tool`"),
  "item-extras": ignored(
    "messages[user].name messages[assistant].name messages[assistant].refusal messages[assistant].annotations messages[user].cache_control messages[user].content[text].cache_control messages[user].content[text].prompt_cache_breakpoint messages[assistant].tool_calls[function].index",
    "and every other field of a message, part or call",
  ),
  tools: carried(
    "tools[function].function.name tools[function].function.description tools[function].function.parameters",
    "without `parameters` a tool has none",
  ),
  "custom-tools": converted(
    "tools[custom].custom.name tools[custom].custom.description tools[custom].custom.format.grammar.syntax tools[custom].custom.format.grammar.definition tools[custom].custom.format.syntax tools[custom].custom.format.definition",
    "a function with one string `input`; the grammar is written into the description, nothing enforces it",
  ),
  "tool-strict": carried(
    "tools[function].function.strict",
    "for engines that read it, see below; the service promises nothing, and any other value is ignored",
    "`true`",
  ),
  "tool-extras": ignored(
    "tools[function].cache_control tools[function].defer_loading",
    "and every other field of a tool",
  ),
  "unknown-tools": refused("tools[*]", "use `function` or `custom`"),
  "tool-choice": carried(
    "tool_choice",
    "`auto` is what engines do by themselves, it is not sent",
    "`none` or `required`",
  ),
  "tool-choice-one": carried("tool_choice.function.name", "the tool must be among `tools`"),
  "tool-choice-custom": converted("tool_choice.custom.name", "the function that the tool became"),
  "tool-choice-without-tools": ignored(
    "tool_choice",
    "there is nothing to choose",
    "a word, without tools",
  ),
  "allowed-tools": refused("tool_choice", "list only those tools", "of the type `allowed_tools`"),
  "parallel-tool-calls": carried("parallel_tool_calls", "where there are tools"),
  temperature: carried("temperature", "0 to 2"),
  "top-p": carried("top_p", "0 to 1"),
  stop: carried("stop", "a string or a list"),
  seed: carried("seed", "a whole number"),
  penalties: carried("presence_penalty frequency_penalty", "-2 to 2"),
  "reasoning-effort": carried("reasoning_effort", "in the engine's words, see below"),
  "json-object": carried(
    "response_format",
    "`text` is what comes without it",
    "of the type `json_object`",
  ),
  "json-schema": refused(
    "response_format output_format text.format",
    "ask for `json_object`, with the schema in a message",
    "of the type `json_schema`",
  ),
  "unknown-formats": refused(
    "response_format",
    "`text` or `json_object`",
    "of any type but `text`, `json_object`",
  ),
  "output-allowance": converted(
    "max_completion_tokens max_tokens",
    "`max_tokens`, at most 65,536 and what the credit pays for; the first wins",
  ),
  stream: served("stream", "the deployment is always asked for a stream"),
  "stream-usage": served("stream_options.include_usage", "a chunk with the usage"),
  model: served("model", "every name leads to the one model; the answer repeats it"),
  choices: refused("n", "send the request again", "above 1"),
  "one-choice": ignored("n", "one answer is what there is", "1"),
  logprobs: refused("logprobs top_logprobs", "leave it out", "`true`, above 0"),
  "no-logprobs": ignored("logprobs top_logprobs", "none are sent", "`false`, 0"),
  functions: refused(
    "functions function_call messages[assistant].function_call",
    "use `tools` and `tool_calls`",
  ),
  "audio-answers": refused("audio modalities", "answers are text", "not text alone"),
  "text-answers": ignored("modalities", "answers are text", '`["text"]`'),
  "without-effect": ignored(
    "user metadata store service_tier prediction safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention verbosity web_search_options logit_bias moderation",
    "and every field that is not in this table",
  ),
  "other-formats": ignored(
    "top_k thinking output_config context_management",
    "no field of this format",
  ),
} satisfies Losses;
