import type { OpenaiErrorCode } from "../../failure.ts";
import type { OpenaiError } from "../error-wire.ts";
import type { Fields } from "../read-fields.ts";

/** A tool as the request defined it, where the model knows it by another name or as another kind of tool. */
export interface OriginalTool {
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
  /** Not null: the answer has reasoning as summary parts. */
  readonly reasoningSummary: string | null;
  readonly includeEncryptedReasoning: boolean;
  readonly toolChoice: unknown;
  readonly tools: readonly unknown[];
  readonly metadata: Fields;
  readonly promptCacheKey: string | null;
  /** By the flat name that the model knows. Pairs, as a name such as `__proto__` is no safe key of an object. */
  readonly originalTools: readonly (readonly [string, OriginalTool])[];
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
  readonly annotations: readonly [];
  /** Not offered; Open Responses requires the list. */
  readonly logprobs: readonly [];
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

/** Tokens of one request, as this format has them. */
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
export type ResponsesErrorCode =
  | "server_error"
  | "rate_limit_exceeded"
  | "context_length_exceeded"
  | "invalid_prompt";

/** The response object: the whole of a body, and what the first and last frames of a stream carry. */
export type ResponsesBody = ResponsesHead & ResponsesOutcome;

/** How far the answer has come, with what goes with it. */
export type ResponsesOutcome =
  | ResponsesInProgress
  | ResponsesCompleted
  | ResponsesIncomplete
  | ResponsesFailed;

/** Nothing has ended yet. */
export interface ResponsesInProgress {
  readonly status: "in_progress";
  readonly completed_at: null;
  readonly error: null;
  readonly incomplete_details: null;
  readonly output: readonly [];
  readonly usage: null;
}

/** The model was done. */
export interface ResponsesCompleted {
  readonly status: "completed";
  /** Seconds since 1970. */
  readonly completed_at: number;
  readonly error: null;
  readonly incomplete_details: null;
  readonly output: readonly OutputItem[];
  readonly usage: ResponsesUsage;
}

/** The model was stopped. */
export interface ResponsesIncomplete {
  readonly status: "incomplete";
  readonly completed_at: null;
  readonly error: null;
  readonly incomplete_details: { readonly reason: "max_output_tokens" | "content_filter" };
  readonly output: readonly OutputItem[];
  readonly usage: ResponsesUsage;
}

/** Nothing was charged, whatever had ended before. */
export interface ResponsesFailed {
  readonly status: "failed";
  readonly completed_at: null;
  readonly error: { readonly code: ResponsesErrorCode; readonly message: string };
  readonly incomplete_details: null;
  readonly output: readonly OutputItem[];
  readonly usage: null;
}

/** What an answer says of itself however far it has come. */
export interface ResponsesHead {
  readonly id: string;
  readonly object: "response";
  /** Seconds since 1970. */
  readonly created_at: number;
  readonly background: false;
  readonly instructions: string | null;
  readonly max_output_tokens: number | null;
  readonly max_tool_calls: null;
  readonly model: string;
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
  readonly metadata: Fields;
}

/** One frame of a stream. Frames are numbered from 0 without gaps. */
export type ResponsesStreamEvent = { readonly sequence_number: number } & (
  | ResponsesStateEvent
  | ResponsesItemEvent
  | ResponsesPartEvent
  | ResponsesTextEvent
  | ResponsesErrorEvent
);

/** Frames that carry the response object. */
export type ResponsesStateEvent =
  | {
      readonly type: "response.created" | "response.in_progress";
      readonly response: ResponsesHead & ResponsesInProgress;
    }
  | {
      readonly type: "response.completed";
      readonly response: ResponsesHead & ResponsesCompleted;
    }
  | {
      readonly type: "response.incomplete";
      readonly response: ResponsesHead & ResponsesIncomplete;
    }
  | { readonly type: "response.failed"; readonly response: ResponsesHead & ResponsesFailed };

/** Frames that begin and end an item. */
export type ResponsesItemEvent =
  | {
      readonly type: "response.output_item.added";
      readonly output_index: number;
      readonly item: OutputItem;
    }
  | {
      readonly type: "response.output_item.done";
      readonly output_index: number;
      readonly item: OutputItem;
    };

/** Where in the answer a frame adds something. */
interface ItemPlace {
  readonly item_id: string;
  readonly output_index: number;
}

/** Frames that begin and end a part of an item. */
export type ResponsesPartEvent = ItemPlace &
  (
    | {
        readonly type: "response.content_part.added" | "response.content_part.done";
        readonly content_index: 0;
        readonly part: TextPart | ReasoningPart;
      }
    | {
        readonly type:
          | "response.reasoning_summary_part.added"
          | "response.reasoning_summary_part.done";
        readonly summary_index: 0;
        readonly part: SummaryPart;
      }
  );

/** Frames that carry a piece of text, and the whole of it. */
export type ResponsesTextEvent = ItemPlace &
  (
    | {
        readonly type: "response.output_text.delta";
        readonly content_index: 0;
        readonly delta: string;
        readonly logprobs: readonly [];
      }
    | {
        readonly type: "response.output_text.done";
        readonly content_index: 0;
        readonly text: string;
        readonly logprobs: readonly [];
      }
    | {
        readonly type: "response.reasoning_text.delta";
        readonly content_index: 0;
        readonly delta: string;
      }
    | {
        readonly type: "response.reasoning_text.done";
        readonly content_index: 0;
        readonly text: string;
      }
    | {
        readonly type: "response.reasoning_summary_text.delta";
        readonly summary_index: 0;
        readonly delta: string;
      }
    | {
        readonly type: "response.reasoning_summary_text.done";
        readonly summary_index: 0;
        readonly text: string;
      }
    | {
        readonly type:
          | "response.function_call_arguments.delta"
          | "response.custom_tool_call_input.delta";
        readonly delta: string;
      }
    | {
        readonly type: "response.function_call_arguments.done";
        readonly name: string;
        readonly arguments: string;
      }
    | { readonly type: "response.custom_tool_call_input.done"; readonly input: string }
  );

/** The frame before the last one of an answer that failed. */
export interface ResponsesErrorEvent {
  readonly type: "error";
  readonly code: OpenaiErrorCode;
  readonly message: string;
  readonly param: string | null;
  /** The same again, as the bodies of errors have it. */
  readonly error: OpenaiError;
}
