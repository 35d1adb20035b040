import { formatLosses, type LossTopic } from "../documents/losses/formats.ts";
import type { Fate } from "../documents/losses/tables/format-losses.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";

/** What a case shows: the fate of a part of a request, or something that the service writes. */
export type RowKind = Fate | "answer";

/** One promise of the wire contract and the cases that show it. */
export interface Row {
  readonly id: string;
  /** What it is in each format that has it. */
  readonly kinds: ReadonlyMap<WireFormatName, RowKind>;
  readonly cases: readonly string[];
  /** The row of docs/losses.md; null: no field or kind of content, but a value or an answer. */
  readonly loss: LossTopic | null;
}

const formatsOf: Readonly<Record<string, WireFormatName>> = {
  c: "chat-completions",
  r: "responses",
  m: "messages",
};

/** Cases of a row of docs/losses.md, whose table says what becomes of it in which formats. */
function loss(topic: LossTopic, cases: string): Row {
  const kinds = Object.values(formatsOf).flatMap((format): readonly [WireFormatName, Fate][] => {
    const row = formatLosses[format][topic];
    return row === undefined ? [] : [[format, row.fate]];
  });
  return { id: topic, kinds: new Map(kinds), cases: cases.split(" "), loss: topic };
}

/** What no table of fields tells, a line each: kind, formats (c, r, m), id, cases. */
function row(kind: RowKind, formats: string, id: string, cases: string): Row {
  const kinds = formats.split("").map((letter): [WireFormatName, RowKind] => {
    const name = formatsOf[letter];
    if (name === undefined) throw new Error(`row ${id}: no format ${letter}`);
    return [name, kind];
  });
  return { id, kinds: new Map(kinds), cases: cases.split(" "), loss: null };
}

/** Content: what is said, by whom, in which spelling. */
const content: readonly Row[] = [
  loss("user-text", "text text-unicode text-parts message-items users-in-a-row"),
  loss("system", "system-string system-later system-later-blocks"),
  loss("leading-systems", "system-leading system-then-system-message system-empty"),
  loss("billing-header", "billing-header billing-header-alone"),
  loss("assistant-text", "multi-turn assistant-last assistant-parts answer-sent-back"),
  loss("assistants-in-a-row", "assistants-in-a-row"),
  loss("empty-answers", "assistant-empty"),
  loss("refusal-parts", "assistant-refusal"),
  loss("reasoning", "reasoning-back reasoning-back-before-call reasoning-back-other-name reasoning-back-empty"),
  loss("foreign-reasoning", "reasoning-dropped"),
  loss("hosted-records", "hosted-items hosted-records"),
  loss("item-extras", "ignored-in-items ignored-in-tool-blocks"),
  loss("media", "image file audio"),
  loss("unknown-parts", "unknown-part"),
  loss("unknown-items", "unknown-item"),
  loss("unknown-roles", "unknown-role function-role tool-role-in-messages"),
  loss("item-reference", "item-reference"),
  loss("compaction", "compaction-trigger"),
  loss("model", "model-any-name model-omitted"),
];

/** Tools, calls and results. */
const tools: readonly Row[] = [
  loss("tools", "tools tools-null-description tools-bare tool-name-128 double-underscore-name additional-tools"),
  loss("tool-extras", "tools-strict"),
  loss("custom-tools", "custom-tool custom-tool-grammar"),
  loss("namespaces", "namespace namespace-custom"),
  loss("additional-tools", "additional-tools additional-tools-alone"),
  loss("hosted-tools", "hosted-dropped hosted-required"),
  loss("unknown-tools", "tool-type-unknown"),
  loss("tool-calls", "tool-loop tool-loop-undeclared text-then-call arguments-verbatim tool-loop-empty-content tool-loop-absent-content"),
  loss("tool-input", "tool-input-any"),
  loss("custom-calls", "custom-call"),
  loss("namespaced-calls", "namespace"),
  loss("tool-results", "parallel-results result-empty result-no-parts result-absent"),
  loss("texts-beside-results", "results-first"),
  loss("result-parts", "result-parts custom-call-output-parts"),
  loss("result-error", "result-error-text result-error-empty result-error-no-text result-error-false"),
  loss("search-result", "search-result"),
  loss("tool-reference", "tool-reference"),
  loss("tool-changes", "tool-changes"),
  loss("tool-definitions", "tool-defined-in-message"),
  loss("result-media", "result-image result-file result-audio"),
  loss("tool-choice", "tool-choice-auto tool-choice-required tool-choice-none"),
  loss("tool-choice-none", "tool-choice-none"),
  loss("tool-choice-one", "tool-choice-one-tool tool-choice-custom"),
  loss("tool-choice-custom", "tool-choice-custom"),
  loss("tool-choice-without-tools", "tool-choice-without-tools tool-choice-none-without-tools hosted-required"),
  loss("tool-choice-hosted", "tool-choice-hosted tool-choice-mcp"),
  loss("allowed-tools", "tool-choice-allowed"),
  loss("parallel-tool-calls", "parallel-off parallel-off-one-tool parallel-on"),
  loss("functions", "functions function-call"),
];

/** Everything besides the conversation. */
const options: readonly Row[] = [
  loss("temperature", "temperature temperature-zero"),
  loss("top-p", "top-p"),
  loss("top-k", "top-k"),
  loss("stop", "stop-string stop-list stop-null"),
  loss("seed", "seed"),
  loss("penalties", "penalties"),
  loss("reasoning-effort", "reasoning-effort reasoning-effort-null reasoning-null"),
  loss("reasoning-summary", "reasoning-summary"),
  loss("json-object", "format-json-object format-text format-null format-absent"),
  loss("json-schema", "json-schema-response-format json-schema-output-format json-schema-text-format"),
  loss("unknown-formats", "unknown-format"),
  loss("other-output-formats", "output-format-text"),
  loss("stream", "stream stream-false"),
  loss("stream-usage", "stream-usage"),
  loss("output-allowance", "max-tokens max-tokens-one max-tokens-huge max-tokens-null max-completion-tokens max-completion-tokens-wins max-completion-tokens-null"),
  loss("one-choice", "n-one"),
  loss("choices", "n-above-1"),
  loss("logprobs", "logprobs top-logprobs"),
  loss("no-background", "background-off"),
  loss("background", "background"),
  loss("stored-state", "previous-response-id conversation"),
  loss("prompt", "prompt"),
  loss("thread", "thread thread-text thread-false"),
  loss("without-effect", "ignored-fields output-config-format"),
  loss("other-formats", "output-config-elsewhere ignored-fields"),
];

/** Values that mean nothing, and those that are none. */
const values: readonly Row[] = [
  row("ignored", "rm", "no system", "system-null"),
  row("ignored", "crm", "no tools", "tools-empty tools-null"),
  row("ignored", "crm", "no options", "options-null"),
  row("ignored", "cr", "output_format text", "output-format-text"),
  row("refused", "crm", "model of a wrong type", "model-not-a-string"),
  row("refused", "crm", "no input", "input-missing input-empty input-not-a-list"),
  row("refused", "crm", "broken items", "item-not-an-object"),
  row("refused", "crm", "broken content", "content-not-text user-content-missing"),
  row("refused", "crm", "results without a call", "result-without-call result-before-call result-of-another-call result-id-missing"),
  row("refused", "r", "custom results without a call", "custom-result-without-call"),
  row("refused", "cr", "arguments that are no text", "arguments-not-text"),
  row("refused", "crm", "bad tool names", "tool-name-129 tool-name-empty tool-name-space tool-name-umlaut"),
  row("refused", "r", "bad namespace names", "namespace-name-bad"),
  row("refused", "crm", "one name twice", "tool-name-twice"),
  row("refused", "r", "one name twice after flattening", "namespace-name-twice"),
  row("refused", "crm", "broken tools", "tools-not-a-list tool-not-an-object tool-without-name tool-schema-not-an-object"),
  row("refused", "crm", "tool_choice of an unknown tool", "tool-choice-unknown tool-choice-no-tools"),
  row("refused", "crm", "nonsense in tool_choice", "tool-choice-nonsense"),
  row("refused", "crm", "bad output allowance", "max-tokens-zero max-tokens-negative max-tokens-fraction max-tokens-text"),
  row("refused", "crm", "options of a wrong type", "stream-not-a-boolean temperature-not-a-number top-p-not-a-number"),
  row("refused", "m", "top_k of a wrong type", "top-k-not-a-number"),
  row("refused", "cm", "stop of a wrong type", "stop-not-text"),
];

/** Whole bodies as agents send them where tests/recordings/ has none: with images, interactive. */
const clients: readonly Row[] = [
  row("carried", "m", "Claude Code", "client-claude-code client-claude-code-title client-claude-code-web-search"),
  row("carried", "r", "Codex", "client-codex client-codex-compact"),
];

/** What the service writes. */
const answers: readonly Row[] = [
  row("answer", "crm", "answer: text", "answer-text"),
  row("answer", "crm", "answer: model", "answer-model answer-model-omitted"),
  row("answer", "crm", "answer: unicode", "answer-unicode"),
  row("answer", "crm", "answer: reasoning", "answer-reasoning answer-reasoning-only"),
  row("answer", "crm", "answer: a call", "answer-call answer-call-no-arguments"),
  row("answer", "crm", "answer: parallel calls", "answer-parallel-calls"),
  row("answer", "crm", "answer: text before a call", "answer-text-then-call answer-reasoning-text-calls"),
  row("answer", "crm", "answer: custom calls", "answer-custom-call answer-custom-call-bare"),
  row("answer", "crm", "answer: namespaced calls", "answer-namespaced-call"),
  row("answer", "crm", "answer: cut in text", "answer-cut-text"),
  row("answer", "crm", "answer: cut in a call", "answer-cut-call answer-cut-second-call answer-cut-custom-call"),
  row("answer", "crm", "answer: cut in reasoning", "answer-cut-reasoning"),
  row("answer", "crm", "answer: content filter", "answer-filtered"),
  row("answer", "crm", "answer: stop sequence", "answer-stop-sequence"),
  row("answer", "crm", "answer: nothing", "answer-empty"),
  row("answer", "crm", "answer: cached and reasoning tokens", "answer-usage"),
  row("answer", "crm", "answer: keepalive", "answer-keepalive"),
  row("answer", "crm", "answer: failure", "answer-failed answer-failed-at-once answer-failed-in-call"),
  row("answer", "crm", "answer: overloaded in mid-stream", "answer-overloaded"),
  row("answer", "crm", "answer: refused after status 200", "answer-refused"),
  row("answer", "crm", "answer: too long in mid-stream", "answer-too-large"),
  row("answer", "crm", "answer: several texts", "answer-two-texts"),
  row("answer", "c", "answer: no usage chunk", "answer-no-usage"),
  row("answer", "r", "answer: reasoning summary", "answer-reasoning-summary"),
  row("answer", "r", "answer: sealed reasoning", "answer-reasoning-sealed"),
  row("answer", "r", "answer: echo", "answer-echo"),
];

/** Every promise of sections 4 to 7 of the wire contract that has cases. */
export const table: readonly Row[] = [
  ...content,
  ...tools,
  ...options,
  ...values,
  ...clients,
  ...answers,
];
