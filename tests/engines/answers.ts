import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { readers } from "../reader/readers.ts";
import { count, list, type JsonRecord, record } from "../reader/reading.ts";
import { formats, type TestService } from "../service/start-service.ts";

/** An answer, in no format's words. */
export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  /** `stop`, `length`, `tool-calls`; "" for an error. */
  readonly finish: string;
  readonly stopSequence: string | null;
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly error: string | null;
  readonly retryAfter: string | null;
  readonly raw: string;
}

const none = {
  text: "",
  reasoning: "",
  calls: [],
  finish: "",
  stopSequence: null,
  input: 0,
  cached: 0,
  output: 0,
  error: null,
};

type Told = Omit<Answered, "status" | "raw" | "retryAfter">;

/** Asks the service in one format; `max` is the output limit. */
export async function askService(
  service: TestService,
  format: WireFormatName,
  {
    max = 16,
    send,
    signal,
    stream,
  }: {
    readonly send: JsonRecord;
    readonly stream: boolean;
    readonly max?: number;
    readonly signal?: AbortSignal;
  },
): Promise<Answered> {
  const door = formats.find(({ name }) => name === format) ?? formats[0];
  const usage =
    format === "chat-completions" && stream ? { stream_options: { include_usage: true } } : {};
  const body = { ...door.body, [door.outputField]: max, temperature: 0, stream, ...usage, ...send };
  const response = await service.post(door.path, body, signal === undefined ? {} : { signal });
  const raw = await response.text();
  const facts = { status: response.status, raw, retryAfter: response.headers.get("retry-after") };
  if (!response.ok) return { ...none, ...facts, error: codeOf(JSON.parse(raw)) };
  return {
    ...(stream ? toldByStream(format, raw) : toldByBody(format, JSON.parse(raw))),
    ...facts,
  };
}

function textOr(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function codeOf(body: unknown): string {
  const error = record(record(body, "body")["error"], "error");
  return String(error["code"] ?? error["type"]);
}

function toldByStream(format: WireFormatName, raw: string): Told {
  const { events, failure, finish } = readers[format](raw);
  const calls: { name: string; arguments: string }[] = [];
  let text = "";
  let reasoning = "";
  for (const event of events)
    if (event.type === "text-delta") text += event.text;
    else if (event.type === "reasoning-delta") reasoning += event.text;
    else if (event.type === "tool-call-start") calls.push({ name: event.name, arguments: "" });
    else if (event.type === "tool-call-delta") {
      const last = calls.at(-1);
      if (last !== undefined) last.arguments += event.arguments;
    }
  const usage = finish?.usage;
  return {
    text,
    reasoning,
    calls,
    finish: finish?.reason ?? "",
    stopSequence: finish?.stopSequence ?? null,
    input: usage?.inputTokens ?? 0,
    cached: usage?.cachedInputTokens ?? 0,
    output: usage?.outputTokens ?? 0,
    error: failure?.code ?? null,
  };
}

const chatReasons: Readonly<Record<string, string>> = { tool_calls: "tool-calls" };
const messageReasons: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool-calls",
};

/** A whole answer; also of an engine that is asked directly, which speaks Chat Completions. */
export function toldByBody(format: WireFormatName, body: unknown): Told {
  const answer = record(body, "body");
  const usage = record(answer["usage"], "usage");
  if (format === "chat-completions") {
    const choice = record(list(answer["choices"], "choices")[0], "choice");
    const message = record(choice["message"], "message");
    const calls = list(message["tool_calls"] ?? [], "calls").map((call) =>
      record(record(call, "call")["function"], "function"),
    );
    const details = record(usage["prompt_tokens_details"] ?? {}, "details");
    const finish = String(choice["finish_reason"]);
    return {
      ...none,
      text: textOr(message["content"]),
      reasoning: textOr(message["reasoning_content"] ?? message["reasoning"]),
      calls: calls.map((call) => ({
        name: String(call["name"]),
        arguments: String(call["arguments"]),
      })),
      finish: chatReasons[finish] ?? finish,
      input: count(usage["prompt_tokens"], "prompt_tokens"),
      cached: Number(details["cached_tokens"] ?? 0),
      output: count(usage["completion_tokens"], "completion_tokens"),
    };
  }
  return format === "responses" ? toldByResponse(answer, usage) : toldByMessage(answer, usage);
}

function toldByResponse(answer: JsonRecord, usage: JsonRecord): Told {
  const items = list(answer["output"], "output").map((item) => record(item, "item"));
  const textsOf = (type: string): string =>
    items
      .filter((item) => item["type"] === type)
      .flatMap((item) => list(item["content"] ?? [], "content"))
      .map((part) => String(record(part, "part")["text"]))
      .join("");
  const calls = items.filter((item) => item["type"] === "function_call");
  const cut = answer["status"] === "incomplete";
  return {
    ...none,
    text: textsOf("message"),
    reasoning: textsOf("reasoning"),
    calls: calls.map((call) => ({
      name: String(call["name"]),
      arguments: String(call["arguments"]),
    })),
    finish: cut ? "length" : calls.length > 0 ? "tool-calls" : "stop",
    input: count(usage["input_tokens"], "input_tokens"),
    cached: Number(record(usage["input_tokens_details"], "details")["cached_tokens"]),
    output: count(usage["output_tokens"], "output_tokens"),
  };
}

function toldByMessage(answer: JsonRecord, usage: JsonRecord): Told {
  const blocks = list(answer["content"], "content").map((block) => record(block, "block"));
  const textsOf = (type: string): string =>
    blocks
      .filter((block) => block["type"] === type)
      .map((block) => String(block[type]))
      .join("");
  const cached = Number(usage["cache_read_input_tokens"]);
  return {
    ...none,
    text: textsOf("text"),
    reasoning: textsOf("thinking"),
    calls: blocks
      .filter((block) => block["type"] === "tool_use")
      .map((block) => ({ name: String(block["name"]), arguments: JSON.stringify(block["input"]) })),
    finish: messageReasons[String(answer["stop_reason"])] ?? String(answer["stop_reason"]),
    stopSequence: answer["stop_sequence"] === null ? null : textOr(answer["stop_sequence"]),
    input: count(usage["input_tokens"], "input_tokens") + cached,
    cached,
    output: count(usage["output_tokens"], "output_tokens"),
  };
}

/** Asks the engine itself, whole. */
export async function askEngine(origin: string, send: JsonRecord): Promise<Answered> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "smol", temperature: 0, max_tokens: 16, ...send }),
  });
  const raw = await response.text();
  const facts = { status: response.status, raw, retryAfter: null };
  if (!response.ok) return { ...none, ...facts, error: raw };
  return { ...toldByBody("chat-completions", JSON.parse(raw)), ...facts };
}
