import type { GenerationOptions } from "../../conversation/conversation.ts";
import { joinTurns } from "../../conversation/join-turns.ts";
import { ensureCountedLimits } from "../counted-limits.ts";
import {
  anyInteger,
  type Fields,
  invalidField,
  isAbsent,
  isObject,
  notOfferedField,
  readInputItems,
  readModel,
  readObject,
  readOneOf,
  readOptionalArray,
  readOptionalBoolean,
  readOptionalInteger,
  readOptionalNumber,
  readOptionalObject,
  readOptionalString,
  readOutputTokens,
  readStopSequences,
  refuseJsonSchemaOutput,
} from "../read-fields.ts";
import { resolveToolChoice } from "../read-tools.ts";
import type { ParsedRequest } from "../wire-format.ts";
import { readChatMessages } from "./messages.ts";
import { readChatToolChoice, readChatTools } from "./tools.ts";
import type { ChatCompletionsEcho } from "./wire.ts";

/** Parses a Chat Completions body. Throws a Failure that names the field. */
export function parseChatCompletionsRequest(body: Fields): ParsedRequest<ChatCompletionsEcho> {
  const model = readModel(body["model"]);
  refuseJsonSchemaOutput(body);
  refuseNotOffered(body);
  const items = readInputItems(body["messages"], "messages");
  const { tools, customTools, counted } = readChatTools(body["tools"]);
  const toolChoice = resolveToolChoice(readChatToolChoice(body["tool_choice"]), {
    tools,
    hosted: new Set(),
  });
  const parsed = {
    conversation: {
      turns: joinTurns(readChatMessages(items)),
      tools,
      toolChoice,
      parallelToolCalls: readOptionalBoolean(body["parallel_tool_calls"], "parallel_tool_calls"),
    },
    options: readOptions(body),
    stream: readOptionalBoolean(body["stream"], "stream") ?? false,
    outputTokensRequested: readOutputTokensRequested(body),
    itemCount: items.length,
    toolCount: counted.count,
    echo: { model, includeUsage: readIncludeUsage(body["stream_options"]), customTools },
  };
  ensureCountedLimits({ itemsParam: "messages", itemCount: items.length, tools: counted });
  return parsed;
}

/** Both fields are checked, though the newer one wins. */
function readOutputTokensRequested(body: Fields): number | null {
  const older = readOutputTokens(body["max_tokens"], "max_tokens");
  return readOutputTokens(body["max_completion_tokens"], "max_completion_tokens") ?? older;
}

function readIncludeUsage(value: unknown): boolean {
  const fields = readOptionalObject(value, "stream_options");
  const asked = readOptionalBoolean(fields?.["include_usage"], "stream_options.include_usage");
  return asked ?? false;
}

function readOptions(body: Fields): GenerationOptions {
  const penalty = { min: -2, max: 2 };
  return {
    temperature: readOptionalNumber(body["temperature"], "temperature", { min: 0, max: 2 }),
    topP: readOptionalNumber(body["top_p"], "top_p", { min: 0, max: 1 }),
    topK: null,
    stopSequences: readStop(body["stop"]),
    seed: readOptionalInteger(body["seed"], "seed", anyInteger),
    presencePenalty: readOptionalNumber(body["presence_penalty"], "presence_penalty", penalty),
    frequencyPenalty: readOptionalNumber(body["frequency_penalty"], "frequency_penalty", penalty),
    reasoningEffort: readOptionalString(body["reasoning_effort"], "reasoning_effort"),
    responseFormat: readResponseFormat(body["response_format"]),
  };
}

function readStop(value: unknown): readonly string[] {
  if (typeof value !== "string") return readStopSequences(value, "stop");
  if (value !== "") return [value];
  throw invalidField("stop", "must not be empty; leave it out.");
}

function readResponseFormat(value: unknown): GenerationOptions["responseFormat"] {
  if (isAbsent(value)) return "text";
  const { type } = readObject(value, "response_format");
  const asked = readOneOf(type, "response_format.type", ["text", "json_object"]);
  return asked === "text" ? "text" : "json-object";
}

function refuseNotOffered(body: Fields): void {
  const choices = readOptionalInteger(body["n"], "n", { min: 1, max: Number.MAX_SAFE_INTEGER });
  if (choices !== null && choices > 1)
    throw notOfferedField(
      "n",
      "more than one answer is not offered. Leave n out, or send n requests.",
    );
  if (readOptionalBoolean(body["logprobs"], "logprobs") === true)
    throw notOfferedField("logprobs", "log probabilities are not offered. Leave it out.");
  const top = readOptionalNumber(body["top_logprobs"], "top_logprobs", anyInteger);
  if (top !== null && top > 0)
    throw notOfferedField("top_logprobs", "log probabilities are not offered. Leave it out.");
  for (const field of ["functions", "function_call"])
    if (!isAbsent(body[field]))
      throw notOfferedField(field, 'this older spelling is not offered. Use "tools" instead.');
  if (isObject(body["audio"]))
    throw notOfferedField("audio", "audio answers are not offered. Leave it out.");
  const kinds = readOptionalArray(body["modalities"], "modalities");
  if (kinds.some((kind) => kind !== "text"))
    throw notOfferedField("modalities", 'answers are text only. Send ["text"] or leave it out.');
}
