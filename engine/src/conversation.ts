/** What a request says, read once from its body. */
export interface Conversation {
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
}

/** One contribution to the conversation. */
export type Turn =
  | { readonly role: "system" | "user"; readonly text: string }
  | { readonly role: "assistant"; readonly parts: readonly AssistantPart[] }
  | ToolResult;

/** What a tool gave back; `callId` names an earlier ToolCall. */
export interface ToolResult {
  readonly role: "tool";
  readonly callId: string;
  readonly text: string;
}

/** A piece of an assistant turn. */
export type AssistantPart =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "text"; readonly text: string }
  | ToolCall;

/** A call that the model made. `arguments` is text, as the model wrote it. */
export interface ToolCall {
  readonly type: "tool-call";
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** A tool that may be called. */
export interface Tool {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the arguments; null: none was given. */
  readonly parameters: JsonObject | null;
}

/** Which tool the model may or must call. */
export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly name: string };

/** Any JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export type JsonObject = { readonly [key: string]: JsonValue };

/** Everything besides the conversation that changes what the model writes; null or empty: not given. */
export interface GenerationOptions {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly stopSequences: readonly string[];
  readonly seed: number | null;
  readonly presencePenalty: number | null;
  readonly frequencyPenalty: number | null;
  readonly responseFormat: "text" | "json-object";
}

/** Tokens of one request. `cachedInputTokens` is part of `inputTokens`, `reasoningTokens` of `outputTokens`. */
export interface Usage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** Why the model stopped. */
export type FinishReason = "stop" | "length" | "tool-calls";

/** One thing that happened to one generation. "finished" and "failed" come last. */
export type AnswerNews =
  | { readonly type: "accepted" }
  /** Prompt or text went on without text to show yet. */
  | { readonly type: "progress"; readonly usage: Usage }
  | {
      readonly type: "text";
      readonly kind: "text" | "reasoning";
      readonly text: string;
      readonly usage: Usage;
    }
  /** A call began. */
  | { readonly type: "call"; readonly callId: string; readonly name: string; readonly usage: Usage }
  | { readonly type: "arguments"; readonly text: string; readonly usage: Usage }
  | {
      readonly type: "finished";
      readonly reason: FinishReason;
      readonly stopSequence: string | null;
      readonly usage: Usage;
    }
  | { readonly type: "failed"; readonly error: RequestError };

/** Why a request gets no answer, as its body says it. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly type: string;
  /** Members of the error besides message and type. */
  readonly details: Readonly<Record<string, string | number>>;

  constructor(
    [status, type]: readonly [number, string],
    message: string,
    details: Readonly<Record<string, string | number>> = {},
  ) {
    super(message);
    this.status = status;
    this.type = type;
    this.details = details;
  }
}

/** Sampling that applies where the request said nothing; what a model's authors recommend, or llama.cpp's defaults. */
export interface SamplingDefaults {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  /** By how much what was said in the last tokens becomes less likely; 1: not at all. */
  readonly repeatPenalty: number;
}
