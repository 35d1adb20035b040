import type { FormatName } from "./ask.ts";

/** A call that the model made. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: string;
}

/** An answer as a person reads it, as far as it has come. */
export interface Answer {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** Why it ended, in the format's own word. */
  readonly finish: string | null;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** What the service said went wrong. */
  readonly error: string | null;
}

/** Before anything has come. */
export const noAnswer: Answer = {
  text: "",
  reasoning: "",
  calls: [],
  finish: null,
  inputTokens: null,
  outputTokens: null,
  error: null,
};

type Json = Readonly<Record<string, unknown>>;

/** The answer with one more event of a stream; what is not known changes nothing. */
export function addEvent(format: FormatName, answer: Answer, data: string): Answer {
  const event = parse(data);
  if (event === null) return answer;
  const failed = errorOf(event);
  if (failed !== null) return { ...answer, error: failed };
  switch (format) {
    case "chat-completions":
      return addChunk(answer, event);
    case "responses":
      return addResponseEvent(answer, event);
    case "messages":
      return addMessageEvent(answer, event);
  }
}

/** The answer of a whole body. */
export function readBody(format: FormatName, data: string): Answer {
  const body = parse(data);
  if (body === null) return { ...noAnswer, error: data };
  const failed = errorOf(body);
  if (failed !== null) return { ...noAnswer, error: failed };
  switch (format) {
    case "chat-completions": {
      const [choice] = listOf(body["choices"]);
      const message = objectOf(choice?.["message"]);
      return withUsage(
        {
          ...noAnswer,
          text: textOf(message["content"]),
          reasoning: textOf(message["reasoning_content"]),
          calls: listOf(message["tool_calls"]).map(callOf),
          finish: wordOf(choice?.["finish_reason"]),
        },
        body["usage"],
      );
    }
    case "responses":
      return readResponse(body);
    case "messages": {
      const blocks = listOf(body["content"]);
      return withUsage(
        {
          ...noAnswer,
          text: joined(blocks, "text", "text"),
          reasoning: joined(blocks, "thinking", "thinking"),
          calls: blocks
            .filter(({ type }) => type === "tool_use")
            .map(({ input, name }) => ({ name: textOf(name), arguments: JSON.stringify(input) })),
          finish: wordOf(body["stop_reason"]),
        },
        body["usage"],
      );
    }
  }
}

function addChunk(answer: Answer, chunk: Json): Answer {
  const [choice] = listOf(chunk["choices"]);
  const delta = objectOf(choice?.["delta"]);
  let { calls } = answer;
  for (const part of listOf(delta["tool_calls"])) {
    const at = typeof part["index"] === "number" ? part["index"] : calls.length;
    calls = withCall(calls, at, callOf(part));
  }
  return withUsage(
    {
      ...answer,
      text: answer.text + textOf(delta["content"]),
      reasoning: answer.reasoning + textOf(delta["reasoning_content"]),
      calls,
      finish: wordOf(choice?.["finish_reason"]) ?? answer.finish,
    },
    chunk["usage"],
  );
}

function addResponseEvent(answer: Answer, event: Json): Answer {
  const { delta, response, type } = event;
  switch (type) {
    case "response.output_text.delta":
      return { ...answer, text: answer.text + textOf(delta) };
    case "response.reasoning_text.delta":
    case "response.reasoning_summary_text.delta":
      return { ...answer, reasoning: answer.reasoning + textOf(delta) };
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      // The last event has the whole answer, calls too.
      return readResponse(objectOf(response));
    default:
      return answer;
  }
}

function readResponse(response: Json): Answer {
  const output = listOf(response["output"]);
  const of = (type: string): readonly Json[] => output.filter((item) => item["type"] === type);
  const reasoning = of("reasoning").flatMap((item) => [
    ...listOf(item["content"]),
    ...listOf(item["summary"]),
  ]);
  const failed = errorOf(response);
  return withUsage(
    {
      ...noAnswer,
      text: joined(
        of("message").flatMap((item) => listOf(item["content"])),
        "output_text",
        "text",
      ),
      reasoning: reasoning.map(({ text }) => textOf(text)).join(""),
      calls: output
        .filter(({ type }) => type === "function_call" || type === "custom_tool_call")
        .map((item) => ({
          name: textOf(item["name"]),
          arguments: textOf(item["arguments"] ?? item["input"]),
        })),
      finish: wordOf(response["status"]),
      error: failed,
    },
    response["usage"],
  );
}

function addMessageEvent(answer: Answer, event: Json): Answer {
  const delta = objectOf(event["delta"]);
  switch (event["type"]) {
    case "message_start":
      return withUsage(answer, objectOf(event["message"])["usage"]);
    case "content_block_start": {
      const block = objectOf(event["content_block"]);
      if (block["type"] !== "tool_use") return answer;
      return {
        ...answer,
        calls: [...answer.calls, { name: textOf(block["name"]), arguments: "" }],
      };
    }
    case "content_block_delta":
      return {
        ...answer,
        text: answer.text + textOf(delta["text"]),
        reasoning: answer.reasoning + textOf(delta["thinking"]),
        calls:
          typeof delta["partial_json"] === "string"
            ? withCall(answer.calls, answer.calls.length - 1, {
                name: "",
                arguments: delta["partial_json"],
              })
            : answer.calls,
      };
    case "message_delta":
      return withUsage(
        { ...answer, finish: wordOf(delta["stop_reason"]) ?? answer.finish },
        event["usage"],
      );
    default:
      return answer;
  }
}

function withCall(calls: readonly ToolCall[], at: number, more: ToolCall): readonly ToolCall[] {
  const before = calls[at];
  const next = [...calls];
  next[at] = {
    name: (before?.name ?? "") + more.name,
    arguments: (before?.arguments ?? "") + more.arguments,
  };
  return next;
}

function callOf(part: Json): ToolCall {
  const called = objectOf(part["function"] ?? part["custom"]);
  return {
    name: textOf(called["name"]),
    arguments: textOf(called["arguments"] ?? called["input"]),
  };
}

function withUsage(answer: Answer, value: unknown): Answer {
  const usage = objectOf(value);
  const { completion_tokens: completion, input_tokens: input } = usage;
  const { output_tokens: output, prompt_tokens: prompt } = usage;
  const cached = [usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]];
  const whole = numberOf(input);
  return {
    ...answer,
    // Messages counts what was cached apart from the input.
    inputTokens:
      numberOf(prompt) ??
      (whole === null
        ? null
        : cached.reduce<number>((sum, part) => sum + (numberOf(part) ?? 0), whole)) ??
      answer.inputTokens,
    outputTokens: numberOf(completion) ?? numberOf(output) ?? answer.outputTokens,
  };
}

function errorOf(body: Json): string | null {
  const { error } = body;
  if (typeof error !== "object" || error === null) return null;
  const { message } = error as Json;
  return typeof message === "string" ? message : JSON.stringify(error);
}

function joined(parts: readonly Json[], type: string, name: string): string {
  return parts
    .filter((part) => part["type"] === type)
    .map((part) => textOf(part[name]))
    .join("");
}

function parse(data: string): Json | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as Json) : null;
  } catch {
    return null;
  }
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function wordOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
