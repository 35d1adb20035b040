/** What an answer repeats of a Messages request. */
export interface MessagesEcho {
  readonly model: string;
}

/** Why an answer stopped, as this format has it. */
export type MessagesStopReason =
  | "end_turn"
  | "max_tokens"
  | "stop_sequence"
  | "tool_use"
  | "refusal";

/** Tokens of one request: `input_tokens` is without what came out of a cache. */
export interface MessagesUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_creation_input_tokens: 0;
  readonly cache_read_input_tokens: number;
}

/** A part of an answer, as this format has it. */
export type MessagesBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
    };

/** What the answer says of itself, before and after it was made. */
interface MessageHead {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly usage: MessagesUsage;
}

/** The body of a Messages answer. */
export type MessageBody = MessageHead & {
  readonly content: readonly MessagesBlock[];
} & MessagesStop;

/** Why an answer stopped, and at which of the request's sequences. */
export type MessagesStop =
  | { readonly stop_reason: "stop_sequence"; readonly stop_sequence: string }
  | {
      readonly stop_reason: Exclude<MessagesStopReason, "stop_sequence">;
      readonly stop_sequence: null;
    };

/** The message with which a stream begins. Its usage is an estimate. */
export interface OpeningMessage extends MessageHead {
  readonly content: readonly [];
  readonly stop_reason: null;
  readonly stop_sequence: null;
}

/** One frame of a stream, but for the frame of an error. */
export type MessagesStreamEvent =
  | { readonly type: "message_start"; readonly message: OpeningMessage }
  | {
      readonly type: "content_block_start";
      readonly index: number;
      readonly content_block: MessagesEmptyBlock;
    }
  | { readonly type: "content_block_delta"; readonly index: number; readonly delta: MessagesDelta }
  | { readonly type: "content_block_stop"; readonly index: number }
  | {
      readonly type: "message_delta";
      readonly delta: MessagesStop;
      readonly usage: MessagesUsage;
    }
  | { readonly type: "message_stop" }
  | { readonly type: "ping" };

/** A block as it begins: nothing was said in it yet. */
export type MessagesEmptyBlock =
  | { readonly type: "text"; readonly text: "" }
  | { readonly type: "thinking"; readonly thinking: ""; readonly signature: "" }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, never>>;
    };

/** What a frame adds to the open block. */
export type MessagesDelta =
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "thinking_delta"; readonly thinking: string }
  | { readonly type: "signature_delta"; readonly signature: string }
  | { readonly type: "input_json_delta"; readonly partial_json: string };
