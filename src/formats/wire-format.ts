import type { Conversation, GenerationOptions } from "../conversation/conversation.ts";
import type { Generation } from "../conversation/collect-generation.ts";
import type { Finish, GenerationEvent } from "../conversation/generation-event.ts";
import type { Failure } from "../failure.ts";

/** The three request formats. */
export type WireFormatName = "chat-completions" | "responses" | "messages";

/** Tells reasoning that this service sealed from what a client made up; `seal/` implements it. */
export interface ReasoningVerifier {
  unseal(sealed: string): string | null;
  verify(text: string, signature: string): boolean;
}

/** How reasoning is sealed for the client to keep. */
export interface ReasoningSigner {
  seal(text: string): string;
  openSigner(): { update(text: string): void; finish(): string };
}

/** A parsed request. `echo` is what the answer repeats of it: plain data, which a worker thread can return. */
export interface ParsedRequest<Echo> {
  readonly conversation: Conversation;
  readonly options: GenerationOptions;
  readonly stream: boolean;
  /** What the client asked for, a positive integer of any size; null: nothing. */
  readonly outputTokensRequested: number | null;
  /** Elements of `messages` or `input`; a string input is one. At most limits.inputItemsMax. */
  readonly itemCount: number;
  /** Tools after flattening, before hosted ones are dropped. At most limits.toolsMax. */
  readonly toolCount: number;
  readonly echo: Echo;
}

/** What an answer needs beside the events. Clock, ids and randomness come in here, so that goldens are exact. */
export interface AnswerContext<Echo> {
  readonly createdAtMs: number;
  readonly echo: Echo;
  /** Tokens, a quick estimate; what `message_start` says before the deployment has counted. */
  readonly inputTokensEstimate: number;
  /** The output allowance granted, in tokens. */
  readonly outputTokensMax: number;
  /** A fresh id: `chatcmpl-`, `resp_`, `msg_`, `rs_`, `fc_`, `ctc_` ... followed by letters and digits. */
  readonly newId: (prefix: string) => string;
  /** Milliseconds since 1970, now. */
  readonly now: () => number;
  readonly reasoning: ReasoningSigner;
  readonly requestId: string;
}

/** Frames of one streamed answer, as text ready to be written. Push: called once per upstream read. */
export interface StreamEncoder {
  open(): string;
  /** "" when there is nothing to say yet. */
  encode(batch: readonly GenerationEvent[]): string;
  keepalive(): string;
  /** Terminal frames of an answer that ended well. Every part has been ended by its event before. */
  finish(finish: Finish): string;
  /** Error frames; nothing comes after. Parts may be open. */
  fail(failure: Failure): string;
}

/** A body to write with its status. Header names are in lower case. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** What is to be counted: texts, and tokens that come on top for the structure around them. */
export interface CountableTexts {
  readonly texts: readonly string[];
  readonly overheadTokens: number;
}

/** One wire format. A format knows neither the other formats nor deployments nor money. */
export interface WireFormat<Echo> {
  readonly name: WireFormatName;
  /** Throws a Failure that names the field. `body` is a JSON object, checked by the caller. */
  parseRequest(
    body: Readonly<Record<string, unknown>>,
    reasoning: ReasoningVerifier,
  ): ParsedRequest<Echo>;
  openEncoder(context: AnswerContext<Echo>): StreamEncoder;
  buildResponse(generation: Generation, context: AnswerContext<Echo>): unknown;
}
