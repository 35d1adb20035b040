import type { WireFormatName } from "../../src/formats/wire-format.ts";

/**
 * What becomes of a field or a content kind. carried: its meaning goes on unchanged; converted: it goes on in other
 * words; ignored: it changes nothing; refused: 400; answer: it is something that the service writes.
 */
export type RowKind = "carried" | "converted" | "ignored" | "refused" | "answer";

/** One promise of the wire contract and the cases that show it. */
export interface Row {
  readonly id: string;
  readonly formats: readonly WireFormatName[];
  readonly what: string;
  readonly kind: RowKind;
  readonly cases: readonly string[];
}

const formatsOf: Readonly<Record<string, WireFormatName>> = {
  c: "chat-completions",
  r: "responses",
  m: "messages",
};

/** One row a line: kind, formats (c, r, m), id, cases, what. */
function row(kind: RowKind, formats: string, id: string, cases: string, what: string): Row {
  return {
    id,
    kind,
    what,
    cases: cases.split(" "),
    formats: formats.split("").map((letter) => {
      const name = formatsOf[letter];
      if (name === undefined) throw new Error(`row ${id}: no format ${letter}`);
      return name;
    }),
  };
}

/** Content: what is said, by whom, in which spelling. */
const content: readonly Row[] = [
  row("carried", "crm", "content as text", "text text-unicode", "a string is the whole text"),
  row("carried", "crm", "text parts", "text-parts", "parts of one message join without separator"),
  row(
    "carried",
    "r",
    "bare items",
    "message-items",
    "items without type, id or status; text parts",
  ),
  row("carried", "r", "input as string", "text", "a string input is one user message and one item"),
  row(
    "carried",
    "crm",
    "assistant turns",
    "multi-turn assistant-last",
    "earlier answers, also last",
  ),
  row("carried", "crm", "assistant parts", "assistant-parts", "parts of one answer join"),
  row("converted", "crm", "assistants in a row", "assistants-in-a-row", "become one turn"),
  row("converted", "cr", "refusal parts", "assistant-refusal", "what was refused is text"),
  row("carried", "crm", "users in a row", "users-in-a-row", "each stays a turn"),
  row(
    "carried",
    "crm",
    "answers sent back",
    "answer-sent-back",
    "our own answer is a valid request",
  ),
  row("converted", "crm", "leading system", "system-leading system-then-system-message", "joined"),
  row("carried", "crm", "system text", "system-string", "one system text"),
  row("ignored", "crm", "empty system", "system-empty", "an empty system text is none"),
  row("ignored", "rm", "null system", "system-null", "a null system text is none"),
  row("carried", "crm", "later system", "system-later", "stays where it is"),
  row("converted", "m", "later system blocks", "system-later-blocks", "parts of one message"),
  row("ignored", "m", "billing header", "billing-header billing-header-alone", "is dropped"),
  row("carried", "crm", "model", "model-any-name model-omitted", "any name or none"),
  row(
    "ignored",
    "crm",
    "empty answers",
    "assistant-empty",
    "an answer that said nothing is no turn",
  ),
  row("ignored", "r", "records of hosted tools", "hosted-items", "left out as their tools are"),
  row("refused", "c", "the function role", "function-role", "use tool"),
  row("refused", "crm", "model of a wrong type", "model-not-a-string", "a name is a string"),
  row(
    "refused",
    "crm",
    "no input",
    "input-missing input-empty input-not-a-list",
    "messages, input",
  ),
  row("refused", "crm", "broken items", "item-not-an-object unknown-role", "items and roles"),
  row("refused", "m", "tool role in Messages", "tool-role-in-messages", "results are blocks there"),
  row("refused", "crm", "broken content", "content-not-text user-content-missing", "content"),
  row("refused", "crm", "images", "image", "in a message"),
  row("refused", "crm", "files", "file", "in a message"),
  row("refused", "cr", "audio", "audio", "in a message"),
  row("refused", "crm", "unknown parts", "unknown-part", "in a message"),
  row("refused", "r", "unknown items", "unknown-item", "what is not known cannot be told"),
];

/** Tools, calls and results. */
const tools: readonly Row[] = [
  row("carried", "crm", "function tools", "tools tools-null-description", "name, text and schema"),
  row("carried", "cr", "bare tools", "tools-bare", "a tool of a name alone"),
  row("ignored", "crm", "tool extras", "tools-strict", "strict, defer_loading, cache_control ..."),
  row("ignored", "crm", "no tools", "tools-empty tools-null", "an empty or null list is none"),
  row(
    "carried",
    "crm",
    "tool calls",
    "tool-loop tool-loop-undeclared text-then-call",
    "and results",
  ),
  row(
    "carried",
    "c",
    "empty content beside calls",
    "tool-loop tool-loop-empty-content tool-loop-absent-content",
    "null, empty or absent",
  ),
  row("carried", "cr", "arguments", "arguments-verbatim", "byte for byte, valid or not"),
  row("carried", "crm", "parallel results", "parallel-results", "in the order in which they came"),
  row("converted", "m", "texts beside results", "results-first", "results first, then one message"),
  row("converted", "crm", "result parts", "result-parts", "joined by a line feed"),
  row("carried", "crm", "empty results", "result-empty result-no-parts", "an empty text"),
  row("carried", "m", "absent results", "result-absent", "an empty text"),
  row(
    "converted",
    "m",
    "is_error",
    "result-error-text result-error-empty result-error-no-text result-error-false",
    "the text, else: error",
  ),
  row("converted", "m", "search results", "search-result", "title, source and texts"),
  row("converted", "m", "tool_reference", "tool-reference", "a line that names the tool"),
  row("converted", "m", "tool_addition, tool_removal", "tool-changes", "lines that name the tool"),
  row("converted", "crm", "images in results", "result-image", "replaced by a text"),
  row("converted", "crm", "files in results", "result-file", "replaced by a text"),
  row("converted", "cr", "audio in results", "result-audio", "replaced by a text"),
  row(
    "refused",
    "crm",
    "results without a call",
    "result-without-call result-before-call result-of-another-call result-id-missing",
    "named by index",
  ),
  row(
    "refused",
    "r",
    "custom results without a call",
    "custom-result-without-call",
    "named by index",
  ),
  row(
    "refused",
    "cr",
    "arguments that are no text",
    "arguments-not-text",
    "arguments are JSON text",
  ),
  row("carried", "m", "input that is no object", "tool-input-any", "any JSON value"),
  row(
    "converted",
    "cr",
    "custom tools",
    "custom-tool custom-tool-grammar",
    "one string, its format told",
  ),
  row("converted", "cr", "custom calls", "custom-call", "the input, wrapped"),
  row(
    "converted",
    "r",
    "parts of custom results",
    "custom-call-output-parts",
    "joined by a line feed",
  ),
  row("converted", "r", "namespaces", "namespace namespace-custom", "namespace__name"),
  row(
    "carried",
    "crm",
    "names with two underscores",
    "double-underscore-name namespace",
    "are ordinary",
  ),
  row(
    "converted",
    "cr",
    "additional_tools",
    "additional-tools additional-tools-alone",
    "join the tools",
  ),
  row("carried", "crm", "long tool names", "tool-name-128", "up to 128 characters"),
  row(
    "refused",
    "crm",
    "bad tool names",
    "tool-name-129 tool-name-empty tool-name-space tool-name-umlaut",
    "param tools",
  ),
  row("refused", "r", "bad namespace names", "namespace-name-bad", "param tools"),
  row("refused", "crm", "one name twice", "tool-name-twice", "param tools"),
  row("refused", "r", "one name twice after flattening", "namespace-name-twice", "param tools"),
  row(
    "refused",
    "crm",
    "broken tools",
    "tools-not-a-list tool-not-an-object tool-without-name tool-schema-not-an-object",
    "tools is a list",
  ),
  row("ignored", "rm", "hosted tools", "hosted-dropped", "left out, but counted"),
  row("converted", "rm", "required with hosted tools alone", "hosted-required", "as auto"),
  row("refused", "rm", "forced hosted tools", "tool-choice-hosted", "by tool_choice"),
  row("refused", "r", "forced mcp", "tool-choice-mcp", "by tool_choice"),
  row(
    "carried",
    "crm",
    "tool_choice",
    "tool-choice-auto tool-choice-none tool-choice-required tool-choice-one-tool",
    "each form",
  ),
  row(
    "ignored",
    "crm",
    "tool_choice without tools",
    "tool-choice-without-tools tool-choice-none-without-tools",
    "nothing to choose",
  ),
  row("refused", "cm", "unknown tool types", "tool-type-unknown", "not offered"),
  row("carried", "cr", "tool_choice of a custom tool", "tool-choice-custom", "by name"),
  row(
    "refused",
    "crm",
    "tool_choice of an unknown tool",
    "tool-choice-unknown tool-choice-no-tools",
    "also without tools",
  ),
  row("refused", "cr", "allowed_tools", "tool-choice-allowed", "not offered"),
  row("refused", "crm", "nonsense in tool_choice", "tool-choice-nonsense", "unknown forms"),
  row(
    "carried",
    "crm",
    "parallel tool calls",
    "parallel-off parallel-off-one-tool parallel-on",
    "on, off or nothing said",
  ),
  row("refused", "c", "functions", "functions function-call", "use tools"),
];

/** Reasoning that a client sends back. */
const reasoning: readonly Row[] = [
  row("carried", "crm", "reasoning back", "reasoning-back reasoning-back-before-call", "as it was"),
  row(
    "carried",
    "c",
    "reasoning field",
    "reasoning-back-other-name reasoning-back-empty",
    "both names",
  ),
  row(
    "ignored",
    "rm",
    "reasoning that is not ours",
    "reasoning-dropped",
    "dropped without an error",
  ),
];

/** Everything besides the conversation. */
const options: readonly Row[] = [
  row("carried", "crm", "temperature", "temperature temperature-zero", "zero is a value"),
  row("carried", "crm", "top_p", "top-p", "as given"),
  row("carried", "m", "top_k", "top-k", "as given"),
  row("carried", "cm", "stop", "stop-string stop-list stop-null", "stop, stop_sequences"),
  row("carried", "c", "seed", "seed", "as given"),
  row("carried", "c", "penalties", "penalties", "presence and frequency"),
  row("carried", "cr", "reasoning effort", "reasoning-effort reasoning-null", "as given"),
  row(
    "carried",
    "r",
    "reasoning",
    "reasoning-summary reasoning-effort-null",
    "effort, summary or null",
  ),
  row(
    "carried",
    "cr",
    "format",
    "format-json-object format-text format-null",
    "text or json_object",
  ),
  row("carried", "r", "text without format", "format-absent", "is text"),
  row("ignored", "crm", "null options", "options-null", "null: not given"),
  row("carried", "crm", "stream", "stream stream-false", "true, false or nothing said"),
  row("carried", "c", "stream_options", "stream-usage", "asks for the usage chunk"),
  row(
    "carried",
    "crm",
    "output allowance",
    "max-tokens max-tokens-one max-tokens-huge max-tokens-null",
    "of any size",
  ),
  row(
    "carried",
    "c",
    "max_completion_tokens",
    "max-completion-tokens max-completion-tokens-wins max-completion-tokens-null",
    "wins",
  ),
  row(
    "refused",
    "crm",
    "bad output allowance",
    "max-tokens-zero max-tokens-negative max-tokens-fraction max-tokens-text",
    "a positive integer",
  ),
  row(
    "refused",
    "crm",
    "options of a wrong type",
    "stream-not-a-boolean temperature-not-a-number top-p-not-a-number",
    "named",
  ),
  row("refused", "m", "top_k of a wrong type", "top-k-not-a-number", "named"),
  row("refused", "cm", "stop of a wrong type", "stop-not-text", "named"),
  row("ignored", "c", "n of one", "n-one", "one answer is what there is"),
  row("refused", "c", "several answers", "n-above-1", "not offered"),
  row("refused", "c", "logprobs", "logprobs top-logprobs", "not offered"),
  row("ignored", "r", "accepted and without effect", "background-off", "store, include, metadata"),
  row(
    "refused",
    "r",
    "server-side state",
    "previous-response-id conversation background prompt",
    "stateless",
  ),
  row("refused", "r", "compaction_trigger", "compaction-trigger", "not offered"),
  row("refused", "r", "item_reference", "item-reference", "tells the way out"),
  row("refused", "m", "tool_definition in a message", "tool-defined-in-message", "use tools"),
  row("refused", "m", "thread", "thread thread-text thread-false", "with details for the SDK"),
  row(
    "refused",
    "crm",
    "json_schema",
    "json-schema-response-format json-schema-output-format json-schema-text-format",
    "any field in any format",
  ),
  row("refused", "cr", "unknown formats", "unknown-format", "text or json_object"),
  row("ignored", "m", "output_config.format", "output-config-format", "ignored whole"),
  row("ignored", "cr", "output_config elsewhere", "output-config-elsewhere", "an unknown field"),
  row("ignored", "crm", "output_format text", "output-format-text", "only json_schema is refused"),
  row("ignored", "crm", "ignored fields", "ignored-fields", "every one of them"),
  row("ignored", "crm", "ignored extras of items", "ignored-in-items", "cache_control, name ..."),
  row(
    "ignored",
    "m",
    "ignored extras of tool blocks",
    "ignored-in-tool-blocks",
    "cache_control, caller",
  ),
];

/** Whole bodies as agents send them where tests/recordings/ has none: with images, in other formats, interactive. */
const clients: readonly Row[] = [
  row(
    "carried",
    "m",
    "Claude Code",
    "client-claude-code client-claude-code-title client-claude-code-web-search",
    "three bodies",
  ),
  row("carried", "r", "Codex", "client-codex client-codex-compact", "two bodies"),
  row("carried", "crm", "opencode", "client-opencode", "one session in three formats"),
];

/** What the service writes. */
const answers: readonly Row[] = [
  row("answer", "crm", "answer: text", "answer-text", "ids, model, usage, finish"),
  row(
    "answer",
    "crm",
    "answer: model",
    "answer-model answer-model-omitted",
    "the name that was asked for",
  ),
  row("answer", "crm", "answer: unicode", "answer-unicode", "emoji, joined and cut surrogates"),
  row(
    "answer",
    "crm",
    "answer: reasoning",
    "answer-reasoning answer-reasoning-only",
    "before the text",
  ),
  row(
    "answer",
    "crm",
    "answer: a call",
    "answer-call answer-call-no-arguments",
    "with its arguments",
  ),
  row("answer", "crm", "answer: parallel calls", "answer-parallel-calls", "one after another"),
  row(
    "answer",
    "crm",
    "answer: text before a call",
    "answer-text-then-call answer-reasoning-text-calls",
    "in order",
  ),
  row(
    "answer",
    "crm",
    "answer: custom calls",
    "answer-custom-call answer-custom-call-bare",
    "the raw text where offered",
  ),
  row(
    "answer",
    "crm",
    "answer: namespaced calls",
    "answer-namespaced-call",
    "split only by the table",
  ),
  row("answer", "crm", "answer: cut in text", "answer-cut-text", "length"),
  row(
    "answer",
    "crm",
    "answer: cut in a call",
    "answer-cut-call answer-cut-second-call answer-cut-custom-call",
    "length, never a half call to run",
  ),
  row("answer", "crm", "answer: cut in reasoning", "answer-cut-reasoning", "length"),
  row("answer", "crm", "answer: content filter", "answer-filtered", "its own reason"),
  row("answer", "crm", "answer: stop sequence", "answer-stop-sequence", "named in Messages"),
  row("answer", "crm", "answer: nothing", "answer-empty", "an empty list or text"),
  row("answer", "crm", "answer: cached and reasoning tokens", "answer-usage", "in the details"),
  row("answer", "crm", "answer: keepalive", "answer-keepalive", "in the middle and between parts"),
  row(
    "answer",
    "crm",
    "answer: failure",
    "answer-failed answer-failed-at-once answer-failed-in-call",
    "frames of its own",
  ),
  row("answer", "crm", "answer: overloaded in mid-stream", "answer-overloaded", "its own code"),
  row("answer", "crm", "answer: refused after status 200", "answer-refused", "never server_error"),
  row("answer", "crm", "answer: too long in mid-stream", "answer-too-large", "its own code"),
  row(
    "answer",
    "crm",
    "answer: several texts",
    "answer-two-texts",
    "each a part where the format has parts",
  ),
  row("answer", "c", "answer: no usage chunk", "answer-no-usage", "unless it was asked for"),
  row(
    "answer",
    "r",
    "answer: reasoning summary",
    "answer-reasoning-summary",
    "when the request sets it",
  ),
  row(
    "answer",
    "r",
    "answer: sealed reasoning",
    "answer-reasoning-sealed",
    "when it was asked for",
  ),
  row("answer", "r", "answer: echo", "answer-echo", "the request's settings in the object"),
];

/** Every field and content kind of sections 4 to 7 of the wire contract. */
export const table: readonly Row[] = [
  ...content,
  ...tools,
  ...reasoning,
  ...options,
  ...clients,
  ...answers,
];
