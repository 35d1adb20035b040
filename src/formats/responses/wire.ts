import type { Fields } from "../read-fields.ts";

/** How a flat tool name is told to the client, for the tools where that is not a plain function call. */
export interface CallSpelling {
  readonly name: string;
  readonly namespace: string | null;
  /** The tool takes raw text. */
  readonly custom: boolean;
}

/** What an answer repeats of a Responses request. */
export interface ResponsesEcho {
  readonly model: string;
  readonly instructions: string | null;
  readonly maxOutputTokens: number | null;
  readonly parallelToolCalls: boolean;
  readonly temperature: number;
  readonly topP: number;
  readonly textFormat: "text" | "json_object";
  readonly reasoningEffort: string | null;
  /** Not null: reasoning is told as summary parts. */
  readonly reasoningSummary: string | null;
  readonly includeEncryptedReasoning: boolean;
  readonly toolChoice: unknown;
  readonly tools: readonly unknown[];
  readonly metadata: Fields;
  readonly promptCacheKey: string | null;
  /** By flat name. Pairs, as a name such as `__proto__` is no safe key of an object. */
  readonly callSpellings: readonly (readonly [string, CallSpelling])[];
}

/** How far an item or an answer has come. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** One element of `output`. Every item keeps its id from the first frame that names it. */
export type OutputItem = ReasoningItem | MessageItem | FunctionCallItem | CustomToolCallItem;

/** What the model thought: as text, or as a summary where the request asked for one. */
export interface ReasoningItem {
  readonly type: "reasoning";
  readonly id: string;
  readonly status: ItemStatus;
  readonly summary: readonly SummaryPart[];
  readonly content?: readonly ReasoningPart[];
  readonly encrypted_content?: string;
}

/** What the model said. */
export interface MessageItem {
  readonly type: "message";
  readonly id: string;
  readonly status: ItemStatus;
  readonly role: "assistant";
  readonly content: readonly TextPart[];
}

/** A call of a function, in its namespace if it has one. */
export interface FunctionCallItem {
  readonly type: "function_call";
  readonly id: string;
  readonly status: ItemStatus;
  readonly call_id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly arguments: string;
}

/** A call of a tool that takes raw text. */
export interface CustomToolCallItem {
  readonly type: "custom_tool_call";
  readonly id: string;
  readonly status: ItemStatus;
  readonly call_id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly input: string;
}

/** Text of a message. */
export interface TextPart {
  readonly type: "output_text";
  readonly text: string;
  readonly annotations: readonly never[];
}

/** Text of reasoning. */
export interface ReasoningPart {
  readonly type: "reasoning_text";
  readonly text: string;
}

/** Text of reasoning where a summary was asked for. */
export interface SummaryPart {
  readonly type: "summary_text";
  readonly text: string;
}

/** Tokens of one request, as this format spells them. */
export interface ResponsesUsage {
  readonly input_tokens: number;
  readonly input_tokens_details: {
    readonly cached_tokens: number;
    readonly cache_write_tokens: number;
  };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

/** The codes of `response.error` that agents act on. */
export type ResponsesErrorCode = "server_error" | "rate_limit_exceeded" | "context_length_exceeded";

/** The response object: the whole of a body, and what the first and last frames of a stream carry. */
export interface ResponsesBody {
  readonly id: string;
  readonly object: "response";
  /** Seconds since 1970. */
  readonly created_at: number;
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  /** Seconds since 1970; null unless the answer was completed. */
  readonly completed_at: number | null;
  readonly background: false;
  readonly error: { readonly code: ResponsesErrorCode; readonly message: string } | null;
  readonly incomplete_details: {
    readonly reason: "max_output_tokens" | "content_filter";
  } | null;
  readonly instructions: string | null;
  readonly max_output_tokens: number | null;
  readonly max_tool_calls: null;
  readonly model: string;
  readonly output: readonly OutputItem[];
  readonly parallel_tool_calls: boolean;
  readonly previous_response_id: null;
  readonly prompt_cache_key: string | null;
  readonly reasoning: { readonly effort: string | null; readonly summary: string | null };
  readonly safety_identifier: null;
  readonly service_tier: "default";
  readonly store: false;
  readonly temperature: number;
  readonly text: { readonly format: { readonly type: "text" | "json_object" } };
  readonly tool_choice: unknown;
  readonly tools: readonly unknown[];
  readonly top_logprobs: 0;
  readonly top_p: number;
  readonly truncation: "disabled";
  readonly presence_penalty: 0;
  readonly frequency_penalty: 0;
  readonly access_programs: null;
  readonly usage: ResponsesUsage | null;
  readonly metadata: Fields;
}
