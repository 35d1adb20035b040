/** What an answer repeats of a Messages request. */
export interface MessagesEcho {
  readonly model: string;
}

/** Why an answer stopped, as this format spells it. */
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

/** A part of an answer, as this format spells it. */
export type MessagesBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
    };

/** The body of a Messages answer. */
export interface MessageBody {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly MessagesBlock[];
  readonly stop_reason: MessagesStopReason | null;
  readonly stop_sequence: string | null;
  readonly usage: MessagesUsage;
}
