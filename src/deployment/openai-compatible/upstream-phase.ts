import type { Dispatcher } from "undici";
import type { AnswerReader } from "./answer-reader.ts";
import type { Attempt } from "./request-attempt.ts";

type Controller = Dispatcher.DispatchController;

/** A connection carries the request; the deployment has said nothing yet. */
export interface Asked {
  readonly type: "asked";
  readonly attempt: Attempt;
  readonly controller: Controller;
}

/** The deployment has said no; its words are read as far as they come soon. */
export interface Refused {
  readonly type: "refused";
  readonly attempt: Attempt;
  readonly controller: Controller;
  readonly status: number;
  readonly retryAfter: string | null;
  bytes: number;
  readonly words: Uint8Array[];
}

/** The deployment has said yes. Times by the deadline's clock. */
export interface Answering {
  readonly type: "answering";
  readonly attempt: Attempt;
  readonly controller: Controller;
  readonly reader: AnswerReader;
  /** Chunks of one read: undici calls once for each, they are read together. */
  unread: Uint8Array[];
  signs: number;
  pieces: number;
  /** When the last piece of the answer came; before the first, when the first frame did. */
  pieceMs: number;
  isFinished: boolean;
}

/** Where a generation is. From `over` and `draining` on its sink has its end. */
export type Phase =
  | { readonly type: "new" }
  | { readonly type: "connecting"; readonly attempt: Attempt }
  | Asked
  | Refused
  | Answering
  /** The rest of the body is thrown away, so that the connection can be used again. */
  | { readonly type: "draining"; readonly timer: unknown }
  | { readonly type: "over" };
