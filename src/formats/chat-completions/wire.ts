/** What an answer repeats of a Chat Completions request. */
export interface ChatCompletionsEcho {
  readonly model: string;
  /** The client asked for the usage chunk of a stream. */
  readonly includeUsage: boolean;
  /** Names of the tools that take raw text, so that their calls come back as custom calls. */
  readonly customTools: readonly string[];
}

/** Why an answer stopped, as this format has it. */
export type ChatFinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** Tokens of one request, as this format has them. */
export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  readonly completion_tokens_details: { readonly reasoning_tokens: number };
}

/** A call of the model, as this format has it. */
export type ChatToolCall =
  | {
      readonly id: string;
      readonly type: "function";
      readonly function: { readonly name: string; readonly arguments: string };
    }
  | {
      readonly id: string;
      readonly type: "custom";
      readonly custom: { readonly name: string; readonly input: string };
    };

/** The body of a Chat Completions answer. */
export interface ChatCompletionBody {
  readonly id: string;
  readonly object: "chat.completion";
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
  readonly choices: readonly [
    {
      readonly index: 0;
      readonly message: {
        readonly role: "assistant";
        readonly content: string | null;
        readonly refusal: null;
        /** An extension that engines and clients share. */
        readonly reasoning_content?: string;
        readonly tool_calls?: readonly ChatToolCall[];
      };
      readonly logprobs: null;
      readonly finish_reason: ChatFinishReason;
    },
  ];
  readonly usage: ChatUsage;
}

/** One frame of a stream, but for `[DONE]` and the frame of an error. */
export type ChatCompletionChunk = ChatDeltaChunk | ChatFinishChunk | ChatUsageChunk;

/** What all chunks of one answer have in common. */
interface ChatChunkHead {
  readonly id: string;
  readonly object: "chat.completion.chunk";
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
}

/** A piece of an answer. */
export interface ChatDeltaChunk extends ChatChunkHead {
  readonly choices: readonly [
    { readonly index: 0; readonly delta: ChatDelta; readonly finish_reason: null },
  ];
  /** In every chunk of a stream that was asked for usage, in none of any other. */
  readonly usage?: null;
}

/** The end of an answer. */
export interface ChatFinishChunk extends ChatChunkHead {
  readonly choices: readonly [
    {
      readonly index: 0;
      readonly delta: Readonly<Record<string, never>>;
      readonly finish_reason: ChatFinishReason;
    },
  ];
  readonly usage?: null;
}

/** The last chunk of a stream that was asked for usage. */
export interface ChatUsageChunk extends ChatChunkHead {
  readonly choices: readonly [];
  readonly usage: ChatUsage;
}

/** What a chunk adds: the role once, then one kind of thing a chunk. */
export type ChatDelta =
  | { readonly role: "assistant"; readonly content: "" }
  | { readonly content: string }
  | { readonly reasoning_content: string }
  | { readonly tool_calls: readonly [ChatToolCallStart | ChatToolCallPiece] };

/** The beginning of a call. */
export type ChatToolCallStart =
  | {
      readonly index: number;
      readonly id: string;
      readonly type: "function";
      readonly function: { readonly name: string; readonly arguments: "" };
    }
  | {
      readonly index: number;
      readonly id: string;
      readonly type: "custom";
      readonly custom: { readonly name: string; readonly input: "" };
    };

/** More of what a call is made with. */
export type ChatToolCallPiece =
  | { readonly index: number; readonly function: { readonly arguments: string } }
  | { readonly index: number; readonly custom: { readonly input: string } };
