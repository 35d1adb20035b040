import {
  RequestError,
  type AssistantPart,
  type Conversation,
  type GenerationOptions,
  type JsonObject,
  type Tool,
  type ToolChoice,
  type Turn,
} from "./conversation.ts";

/** A Chat Completions request as the engine understands it. */
export interface ChatRequest {
  readonly conversation: Conversation;
  readonly options: GenerationOptions;
  /** null: as much as the context holds. */
  readonly outputTokensMax: number | null;
  readonly stream: boolean;
  /** When a stream tells usage: never, at its end, or with every chunk. */
  readonly usage: "none" | "last" | "every";
}

type Members = Readonly<Record<string, unknown>>;

/** Checks a body. Throws a RequestError that names the field at fault. */
export function parseChatRequest(body: unknown): ChatRequest {
  if (!isMembers(body)) throw invalid("", "must be a JSON object");
  const streamOptions = isMembers(body["stream_options"]) ? body["stream_options"] : {};
  const isEvery = streamOptions["continuous_usage_stats"] === true;
  return {
    conversation: parseConversation(body),
    options: parseOptions(body),
    outputTokensMax:
      readCount(body, "max_completion_tokens") ?? readCount(body, "max_tokens") ?? null,
    stream: body["stream"] === true,
    usage: isEvery ? "every" : streamOptions["include_usage"] === true ? "last" : "none",
  };
}

/** The part of a body that decides what the model reads. Throws a RequestError. */
export function parseConversation(body: unknown): Conversation {
  if (!isMembers(body)) throw invalid("", "must be a JSON object");
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalid("messages", "must be a list of at least one message");
  const tools = parseTools(body["tools"]);
  return {
    turns: messages.map((message, index) => parseMessage(message, `messages[${String(index)}]`)),
    tools,
    toolChoice: parseToolChoice(body["tool_choice"], tools),
  };
}

function parseMessage(message: unknown, at: string): Turn {
  if (!isMembers(message)) throw invalid(at, "must be an object");
  const { role } = message;
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", text: readText(message["content"], at) };
    case "user":
      return { role, text: readText(message["content"], at) };
    case "tool":
      return {
        role,
        callId: readString(message, "tool_call_id"),
        text: readText(message["content"], at),
      };
    case "assistant":
      return { role, parts: parseParts(message, at) };
    default:
      throw invalid(`${at}.role`, "must be system, developer, user, assistant or tool");
  }
}

/** Chat Completions has one text, one reasoning and the calls of a turn: in this order the model reads them. */
function parseParts(message: Members, at: string): readonly AssistantPart[] {
  const parts: AssistantPart[] = [];
  const reasoning = readString(message, "reasoning_content") || readString(message, "reasoning");
  if (reasoning !== "") parts.push({ type: "reasoning", text: reasoning });
  const text = readText(message["content"] ?? "", at);
  if (text !== "") parts.push({ type: "text", text });
  const calls = message["tool_calls"] ?? [];
  if (!Array.isArray(calls)) throw invalid(`${at}.tool_calls`, "must be a list");
  for (const call of calls as readonly unknown[]) {
    const called = isMembers(call) ? call["function"] : null;
    if (!isMembers(call) || !isMembers(called) || readString(called, "name") === "")
      throw invalid(`${at}.tool_calls`, "must be calls with a function's name and arguments");
    parts.push({
      type: "tool-call",
      id: readString(call, "id"),
      name: readString(called, "name"),
      arguments: readString(called, "arguments"),
    });
  }
  return parts;
}

function parseTools(value: unknown): readonly Tool[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid("tools", "must be a list");
  return value.map((tool: unknown, index) => {
    const declared = isMembers(tool) ? tool["function"] : null;
    if (!isMembers(declared) || readString(declared, "name") === "")
      throw invalid(`tools[${String(index)}]`, "must be a function with a name");
    const { description, parameters } = declared;
    return {
      name: readString(declared, "name"),
      description: typeof description === "string" ? description : null,
      parameters: isMembers(parameters) ? (parameters as JsonObject) : null,
    };
  });
}

function parseToolChoice(value: unknown, tools: readonly Tool[]): ToolChoice {
  if (value === undefined || value === null) return { type: "auto" };
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  const called = isMembers(value) ? value["function"] : null;
  const name = isMembers(called) ? readString(called, "name") : "";
  if (tools.some((tool) => tool.name === name)) return { type: "tool", name };
  throw invalid("tool_choice", "must be auto, none, required, or the function of one of the tools");
}

function parseOptions(body: Members): GenerationOptions {
  const { response_format: format, stop } = body;
  const kind = isMembers(format) ? readString(format, "type") : "text";
  if (kind !== "text" && kind !== "json_object")
    throw invalid("response_format", "must be of type text or json_object");
  const stops: readonly unknown[] = Array.isArray(stop) ? stop : stop ? [stop] : [];
  if (!stops.every((each) => typeof each === "string"))
    throw invalid("stop", "must be a text or a list of texts");
  return {
    temperature: readNumber(body, "temperature"),
    topP: readNumber(body, "top_p"),
    topK: readNumber(body, "top_k"),
    stopSequences: stops,
    seed: readNumber(body, "seed"),
    presencePenalty: readNumber(body, "presence_penalty"),
    frequencyPenalty: readNumber(body, "frequency_penalty"),
    responseFormat: kind === "json_object" ? "json-object" : "text",
  };
}

function readText(content: unknown, at: string): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) {
    const parts: readonly unknown[] = content;
    const texts = parts.filter((part) => isMembers(part) && part["type"] === "text");
    if (texts.length === parts.length)
      return texts.map((part) => readString(part as Members, "text")).join("");
  }
  throw invalid(`${at}.content`, "must be a text or a list of text parts");
}

function readString(members: Members, name: string): string {
  const value = members[name];
  return typeof value === "string" ? value : "";
}

function readNumber(members: Members, name: string): number | null {
  const value = members[name] ?? null;
  if (value === null || typeof value === "number") return value;
  throw invalid(name, "must be a number");
}

function readCount(members: Members, name: string): number | null {
  const value = readNumber(members, name);
  if (value === null || (Number.isInteger(value) && value >= 1)) return value;
  throw invalid(name, "must be a whole number of at least 1");
}

function invalid(param: string, rule: string): RequestError {
  const what = param === "" ? "The body" : param;
  return new RequestError([400, "invalid_request_error"], `${what} ${rule}.`, { param });
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
