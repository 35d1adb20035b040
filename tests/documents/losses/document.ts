import { embeddedLosses } from "./tables/embedded.ts";
import type { EngineLoss, EngineLosses, EngineTopic } from "./tables/engine-losses.ts";
import { engineTopics } from "./tables/engine-losses.ts";
import type { DialectName } from "../../../src/deployment/openai-compatible/dialect.ts";
import { openaiCompatibleLosses } from "./tables/openai-compatible.ts";
import type { Losses } from "./tables/format-losses.ts";
import type { WireFormatName } from "../../../src/formats/wire-format.ts";
import { formatLosses } from "./formats.ts";
import { stepsOf } from "./places.ts";

const introduction = `# What becomes of a request

What of a request reaches the model, and what does not. \`npm run docs:losses\` writes these tables from those in
\`tests/documents/losses/tables/\`, and a test asks a running service for each row.

| | |
|---|---|
| carried | it goes to the model as it is |
| converted | it goes to the model in another form |
| served | the service does it itself, the model sees nothing of it |
| ignored | it changes nothing of what the model gets, whatever its value |
| refused | \`400\`, with the field in \`param\` (Messages: at the beginning of the message) |

A field that no table names is ignored. \`null\` is as good as nothing. A wrong type is refused where the
field is carried or converted and its row says nothing else.
In the names, brackets hold the role or the type of a list's elements: \`messages[user].content[text].text\` is the text of the text
parts of user messages; \`*\` is any other kind, and what begins with \`…\` begins as the name before it. What an application
sends back of an answer, as it came, is accepted by its format. \`/v1/messages/count_tokens\` reads its body as Messages does.

What all three formats carry means the same in each: a conversation may go on in another format, with its tools, calls, results
and, sealed as that format does it, its reasoning. Two things take the shape of a format: Messages writes the arguments of a call
anew, as its \`input\` is JSON and no text; Chat Completions has one reasoning, one text and then the calls of an answer, whatever
their order was.
`;

const titles: Readonly<Record<WireFormatName, string>> = {
  "chat-completions": "Chat Completions",
  responses: "Responses",
  messages: "Messages",
};

const engineTitles: Readonly<Record<Exclude<DialectName, "embedded">, string>> = {
  vllm: "vLLM",
  sglang: "SGLang",
  "llama-cpp": "llama.cpp",
  ollama: "Ollama",
  generic: "any other",
};

const engineIntroduction = `## Engines

The second half of the way: what becomes of it between the service and the engine. The service sends Chat Completions in the words
that each engine knows; which engine it is, it asks, or \`TRIBUTARY_DEPLOYMENT_DIALECT\` says. What an engine does with what it gets
is its own affair.
`;

const topicTitles: Readonly<Record<EngineTopic, string>> = {
  temperature: "temperature",
  topP: "top-p",
  topK: "top-k",
  stopSequences: "stop sequences",
  seed: "seed",
  presencePenalty: "presence penalty",
  frequencyPenalty: "frequency penalty",
  reasoningEffort: "reasoning effort",
  responseFormat: "response format",
  laterSystem: "a later system message",
  orderOfParts: "the order of texts, reasoning and calls in one answer",
  earlierReasoning: "reasoning of earlier answers",
  emptyArguments: "a call without arguments",
  brokenArguments: "a call whose arguments are no JSON object",
  severalCalls: "several calls in one answer, and their results",
  toolWithoutParameters: "a tool without parameters",
  strictTools: "`strict` of a tool",
  noTool: "tool choice: none",
  anyTool: "tool choice: any",
  oneTool: "tool choice: this one",
  parallelToolCalls: "parallel calls on or off",
  loneSurrogates: "half a surrogate pair in a text",
};

/** The whole of docs/losses.md. */
export function writeLosses(): string {
  const names = Object.keys(titles) as WireFormatName[];
  const tables = names.map((name) => `## ${titles[name]}\n\n${writeFormat(formatLosses[name])}`);
  return [introduction, ...tables, engineIntroduction, writeEngines()].join("\n");
}

function writeFormat(losses: Losses): string {
  const rows = Object.values(losses).map(({ fate, fields, how, when }) => {
    const names = shorten(fields).map(code).join(", ");
    return [when === null ? names : `${names}: ${when}`, fate, how];
  });
  return writeTable([["field", "becomes", "how"], ...rows]);
}

/** A name that only goes on after the last whole one before it, or ends otherwise, is written from there. */
function shorten(fields: readonly string[]): readonly string[] {
  let whole: readonly string[] = [];
  return fields.map((field) => {
    const steps = stepsOf(field);
    const same = steps.findIndex((step, at) => step !== whole[at]);
    if (same >= Math.max(whole.length - 1, 2)) return `…${joinSteps(steps.slice(same))}`;
    whole = steps;
    return field;
  });
}

function joinSteps([first = "", ...rest]: readonly string[]): string {
  return first + rest.map((step) => (step.startsWith("[") ? step : `.${step}`)).join("");
}

function writeEngines(): string {
  const names = Object.keys(engineTitles) as (keyof typeof engineTitles)[];
  const columns: readonly EngineLosses[] = [
    ...names.map((name) => openaiCompatibleLosses(name)),
    embeddedLosses,
  ];
  const head = ["", ...names.map((name) => engineTitles[name]), "embedded engine"];
  const rows = engineTopics.map((topic) => [
    topicTitles[topic],
    ...columns.map((losses) => writeCell(losses[topic])),
  ]);
  return writeTable([head, ...rows]);
}

/** A cell of the table of engines. */
export function writeCell({ fate, how }: EngineLoss): string {
  return how === "" ? fate : `${fate}: ${how}`;
}

function writeTable([head = [], ...rows]: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return `${lines.join("\n")}\n`;
}

/** A bar would end the cell. */
function code(field: string): string {
  return `\`${field.replaceAll("|", String.raw`\|`)}\``;
}
