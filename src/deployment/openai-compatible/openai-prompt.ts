import type {
  AssistantPart,
  Conversation,
  GenerationOptions,
  JsonValue,
  Tool,
  Turn,
} from "../../conversation/conversation.ts";
import type { Prompt, PromptSettings } from "../deployment.ts";
import {
  type Dialect,
  type DialectName,
  dialectOf,
  type EngineHabits,
  type ReasoningField,
} from "./dialect.ts";

/** The plain data that says how prompts for this deployment are written. */
export function openaiPromptSettings(
  dialect: DialectName,
  reasoningField: ReasoningField,
  habits: Partial<EngineHabits> = {},
): PromptSettings {
  const { takesEffort = true, extraFields = [] } = habits;
  return { kind: "openai-compatible", dialect, reasoningField, takesEffort, extraFields };
}

/**
 * The body of a request but for its model, its output limit and its closing brace. Pure: equal conversations give equal
 * bytes, on any thread, so that the engine's prefix cache holds.
 */
export function prepareOpenaiPrompt(
  promptSettings: PromptSettings,
  conversation: Conversation,
  options: GenerationOptions,
): Prompt {
  const dialect = dialectOf(promptSettings);
  const setting =
    promptSettings["reasoningField"] === "reasoning" ? "reasoning" : "reasoning_content";
  const body: MutableJson = {
    messages: conversation.turns.map((turn) =>
      message(turn, { dialect, reasoningField: dialect.reasoningField ?? setting }),
    ),
  };
  addTools(body, conversation, dialect);
  addOptions(body, options, dialect);
  body["stream"] = true;
  body["stream_options"] = dialect.continuousUsage
    ? { include_usage: true, continuous_usage_stats: true }
    : { include_usage: true };
  return { bytes: new TextEncoder().encode(wellFormedJson(body).slice(0, -1)) };
}

/** The whole body, in parts that are not joined: the first may be large. The limit is the allowance that was reserved. */
export function completeBody(
  prompt: Prompt,
  model: string,
  outputTokensMax: number,
): readonly Uint8Array[] {
  const rest = `,"model":${JSON.stringify(model)},"max_tokens":${String(outputTokensMax)}}`;
  return [prompt.bytes, Buffer.from(rest)];
}

type MutableJson = Record<string, JsonValue>;

interface MessageStyle {
  readonly dialect: Dialect;
  readonly reasoningField: ReasoningField;
}

function message(turn: Turn, style: MessageStyle): JsonValue {
  switch (turn.role) {
    case "system":
    case "user":
      return { role: turn.role, content: turn.text };
    case "tool":
      return { role: "tool", tool_call_id: turn.callId, content: turn.text };
    case "assistant":
      return assistantMessage(turn.parts, style);
    default:
      return turn satisfies never;
  }
}

/** One message holds one text, one reasoning and the calls: pieces are joined, and the format loses their order. */
function assistantMessage(parts: readonly AssistantPart[], style: MessageStyle): JsonValue {
  let text = "";
  let reasoning = "";
  const calls: JsonValue[] = [];
  for (const part of parts) {
    switch (part.type) {
      case "text":
        text += part.text;
        break;
      case "reasoning":
        reasoning += part.text;
        break;
      case "tool-call":
        calls.push({
          id: part.id,
          type: "function",
          function: {
            name: part.name,
            arguments: style.dialect.parsesArguments ? objectText(part.arguments) : part.arguments,
          },
        });
        break;
      default:
        part satisfies never;
    }
  }
  const built: MutableJson = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
  };
  if (reasoning !== "") built[style.reasoningField] = reasoning;
  if (calls.length > 0) built["tool_calls"] = calls;
  return built;
}

/**
 * Arguments as the text of a JSON object: as they came where they are one, else an object around them. A call that was cut
 * by its limit comes back so, and an engine that parses it would refuse every later turn.
 */
function objectText(written: string): string {
  if (written.trim() === "") return "{}";
  try {
    const value: unknown = JSON.parse(written);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return written;
  } catch {
    // What does not parse goes on as a text inside the object.
  }
  return JSON.stringify({ input: written });
}

/** An empty list and a choice without tools are not passed on: engines refuse both. */
function addTools(body: MutableJson, conversation: Conversation, dialect: Dialect): void {
  const { toolChoice, parallelToolCalls } = conversation;
  const chosen = toolChoice.type === "tool" ? toolChoice.name : null;
  const alone = chosen !== null && dialect.namedToolChoice === "alone";
  const hidden = toolChoice.type === "none" && !dialect.toolChoice;
  const tools = hidden ? [] : conversation.tools.filter((tool) => !alone || tool.name === chosen);
  if (tools.length === 0) return;
  body["tools"] = tools.map((tool) => toolDefinition(tool, dialect));
  // `auto` is every engine's default; naming it would only take bytes.
  if (dialect.toolChoice && toolChoice.type !== "auto")
    body["tool_choice"] =
      chosen === null
        ? toolChoice.type
        : alone
          ? "required"
          : { type: "function", function: { name: chosen } };
  if (parallelToolCalls !== null) body["parallel_tool_calls"] = parallelToolCalls;
}

function toolDefinition(tool: Tool, dialect: Dialect): JsonValue {
  return {
    type: "function",
    function: {
      name: tool.name,
      ...(tool.description === null ? {} : { description: tool.description }),
      // Chat templates walk through the properties and fail where there are none.
      parameters: tool.parameters ?? { type: "object", properties: {} },
      ...(tool.strict === true && dialect.strict ? { strict: true } : {}),
    },
  };
}

function addOptions(body: MutableJson, options: GenerationOptions, dialect: Dialect): void {
  const effort =
    options.reasoningEffort !== null &&
    Object.hasOwn(dialect.reasoningEfforts, options.reasoningEffort)
      ? dialect.reasoningEfforts[options.reasoningEffort]
      : undefined;
  if (options.temperature !== null) body["temperature"] = options.temperature;
  if (options.topP !== null) body["top_p"] = Math.max(options.topP, dialect.topPLeast);
  // Below 1 it means no limit, for which engines have different numbers.
  if (options.topK !== null && options.topK >= 1 && dialect.topK) body["top_k"] = options.topK;
  if (options.stopSequences.length > 0) body["stop"] = options.stopSequences;
  if (options.seed !== null) body["seed"] = options.seed;
  if (options.presencePenalty !== null) body["presence_penalty"] = options.presencePenalty;
  if (options.frequencyPenalty !== null) body["frequency_penalty"] = options.frequencyPenalty;
  if (effort !== undefined) body["reasoning_effort"] = effort;
  if (options.responseFormat === "json-object") body["response_format"] = { type: "json_object" };
}

/** JSON text in which half a surrogate pair is the replacement character: engines refuse or fail on the half. */
function wellFormedJson(value: JsonValue): string {
  const json = JSON.stringify(value);
  // JSON.stringify escapes exactly the lone halves; the same characters in a text have their backslash doubled.
  return json.includes(String.raw`\ud`) ? JSON.stringify(wellFormed(value)) : json;
}

function wellFormed(value: JsonValue): JsonValue {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((element: JsonValue) => wellFormed(element));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key.toWellFormed(), wellFormed(member)]),
  );
}
