import type { GenerationOptions, Turn } from "../../conversation/conversation.ts";
import { joinTurns } from "../../conversation/join-turns.ts";
import { ensureCountedLimits } from "../counted-limits.ts";
import {
  type Fields,
  isAbsent,
  isObject,
  notOfferedField,
  readModel,
  readObject,
  readOneOf,
  readOptionalArray,
  readOptionalBoolean,
  readOptionalNumber,
  readOptionalObject,
  readOptionalString,
  readOutputTokens,
  refuseJsonSchemaOutput,
} from "../read-fields.ts";
import { resolveToolChoice } from "../read-tools.ts";
import type { ParsedRequest, ReasoningVerifier } from "../wire-format.ts";
import { readResponsesInput } from "./items.ts";
import { readResponsesToolChoice, readResponsesTools, type ResponsesTools } from "./tools.ts";
import type { ResponsesEcho } from "./wire.ts";

/** Parses a Responses body. Throws a Failure that names the field. */
export function parseResponsesRequest(
  body: Fields,
  reasoning: ReasoningVerifier,
): ParsedRequest<ResponsesEcho> {
  const model = readModel(body["model"]);
  refuseJsonSchemaOutput(body);
  refuseServerSideState(body);
  const input = readResponsesInput(body["input"], reasoning);
  const instructions = readOptionalString(body["instructions"], "instructions");
  const tools = readResponsesTools([
    { items: readOptionalArray(body["tools"], "tools"), param: "tools" },
    ...input.toolSources,
  ]);
  const system: readonly Turn[] =
    instructions === null ? [] : [{ role: "system", text: instructions }];
  const settings = readSettings(body);
  const parsed = {
    conversation: {
      turns: joinTurns([...system, ...input.turns]),
      tools: tools.tools,
      toolChoice: resolveToolChoice(readResponsesToolChoice(body["tool_choice"]), tools),
      parallelToolCalls: settings.parallelToolCalls,
    },
    options: buildOptions(settings),
    stream: readOptionalBoolean(body["stream"], "stream") ?? false,
    outputTokensRequested: settings.maxOutputTokens,
    itemCount: input.itemCount,
    toolCount: tools.counted.count,
    echo: { model, instructions, ...buildEcho(settings), ...echoTools(body, tools) },
  };
  ensureCountedLimits({ itemsParam: "input", itemCount: input.itemCount, tools: tools.counted });
  return parsed;
}

/** The fields that both the model's options and the echo are made of. */
interface Settings {
  readonly maxOutputTokens: number | null;
  readonly parallelToolCalls: boolean | null;
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly textFormat: "text" | "json_object";
  readonly reasoningEffort: string | null;
  readonly reasoningSummary: string | null;
  readonly includeEncryptedReasoning: boolean;
  readonly metadata: Fields;
  readonly promptCacheKey: string | null;
}

function readSettings(body: Fields): Settings {
  const reasoning = readOptionalObject(body["reasoning"], "reasoning");
  const { metadata, prompt_cache_key: promptCacheKey } = body;
  return {
    maxOutputTokens: readOutputTokens(body["max_output_tokens"], "max_output_tokens"),
    parallelToolCalls: readOptionalBoolean(body["parallel_tool_calls"], "parallel_tool_calls"),
    temperature: readOptionalNumber(body["temperature"], "temperature", { min: 0, max: 2 }),
    topP: readOptionalNumber(body["top_p"], "top_p", { min: 0, max: 1 }),
    textFormat: readTextFormat(body["text"]),
    reasoningEffort: readOptionalString(reasoning?.["effort"], "reasoning.effort"),
    reasoningSummary: readOptionalString(reasoning?.["summary"], "reasoning.summary"),
    includeEncryptedReasoning: readOptionalArray(body["include"], "include").includes(
      "reasoning.encrypted_content",
    ),
    // The answer repeats these two and nothing else reads them, so a value of another type is not refused.
    metadata: isObject(metadata) ? metadata : {},
    promptCacheKey: typeof promptCacheKey === "string" ? promptCacheKey : null,
  };
}

/** `text.verbosity` is ignored, so `text` itself may hold anything beside its format. */
function readTextFormat(value: unknown): "text" | "json_object" {
  const format = readOptionalObject(value, "text")?.["format"];
  if (isAbsent(format)) return "text";
  const { type } = readObject(format, "text.format");
  return readOneOf(type, "text.format.type", ["text", "json_object"]);
}

function buildOptions(settings: Settings): GenerationOptions {
  return {
    temperature: settings.temperature,
    topP: settings.topP,
    reasoningEffort: settings.reasoningEffort,
    responseFormat: settings.textFormat === "text" ? "text" : "json-object",
    // Not offered: this format has no such fields.
    topK: null,
    stopSequences: [],
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
  };
}

/** What the answer repeats of the settings: the vendor's own defaults where the request left them open. */
function buildEcho(
  settings: Settings,
): Omit<ResponsesEcho, "model" | "instructions" | "toolChoice" | "tools" | "originalTools"> {
  return {
    ...settings,
    parallelToolCalls: settings.parallelToolCalls ?? true,
    temperature: settings.temperature ?? 1,
    topP: settings.topP ?? 1,
  };
}

function echoTools(
  body: Fields,
  { originalTools }: ResponsesTools,
): Pick<ResponsesEcho, "toolChoice" | "tools" | "originalTools"> {
  return {
    toolChoice: body["tool_choice"] ?? "auto",
    tools: readOptionalArray(body["tools"], "tools").map(echoTool),
    originalTools,
  };
}

/** The SDK's types and Open Responses promise fields of a function tool that requests may leave out. */
function echoTool(tool: unknown): unknown {
  if (!isObject(tool) || tool["type"] !== "function") return tool;
  return {
    ...tool,
    description: tool["description"] ?? null,
    parameters: tool["parameters"] ?? null,
    strict: tool["strict"] ?? null,
  };
}

function refuseServerSideState(body: Fields): void {
  for (const field of ["previous_response_id", "conversation"])
    if (!isAbsent(body[field]))
      throw notOfferedField(
        field,
        "nothing is stored here. Send the whole history as items of `input`.",
      );
  if (!isAbsent(body["prompt"]))
    throw notOfferedField(
      "prompt",
      "stored prompts are not offered. Send their text as `instructions` or `input`.",
    );
  if (readOptionalBoolean(body["background"], "background") === true)
    throw notOfferedField(
      "background",
      "answers in the background are not offered. Leave it out and stream the answer instead.",
    );
}
