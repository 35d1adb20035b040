import type { Dispatcher } from "undici";
import type { AnswerReader } from "./answer-reader.ts";
import type { Burst } from "./burst-turns.ts";
import type { Attempt } from "./request-attempt.ts";

type Controller = Dispatcher.DispatchController;

/** A connection carries the request, and no status has come yet. */
export interface Asked {
  readonly type: "asked";
  readonly attempt: Attempt;
  readonly controller: Controller;
}

/** The answer has an error status; its body is read as far as it comes within `upstreamRefusalMs`. */
export interface Refused {
  readonly type: "refused";
  readonly attempt: Attempt;
  readonly controller: Controller;
  readonly status: number;
  readonly retryAfter: string | null;
  bytes: number;
  readonly body: Uint8Array[];
}

/** The answer has a status of success. Times by the deadline's clock. */
export interface Answering {
  readonly type: "answering";
  readonly attempt: Attempt;
  readonly controller: Controller;
  readonly reader: AnswerReader;
  /** Chunks of one read, which `#read` takes together: undici calls once for each. */
  readonly unread: Uint8Array[];
  readonly burst: Burst;
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
  /** The sink has its end; the rest of the body is thrown away, so that the connection can be used again. */
  | { readonly type: "draining"; readonly attempt: Attempt; readonly timer: unknown }
  | { readonly type: "over" };
