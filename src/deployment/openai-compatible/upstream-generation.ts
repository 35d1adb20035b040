import type { Dispatcher } from "undici";
import { Failure, failureFromUnknown } from "../../failure.ts";
import type { Ending, GenerationSink, RunningGeneration } from "../deployment.ts";
import { type AnswerReader, openAnswerReader } from "./answer-reader.ts";
import type { Connection, Connections, RequestHandler } from "./connections.ts";
import type { StreamReaderParts } from "./stream.ts";

/** One request to a deployment. Times in milliseconds. */
export interface GenerationRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In parts, sent one after another. */
  readonly body: readonly Uint8Array[];
  readonly connectMs: number;
  readonly firstEventMs: number;
  readonly silenceMs: number;
}

/** What a running generation needs from outside. */
export interface GenerationHooks extends StreamReaderParts {
  /** The Failure of an answer with an error status; `retryAfter` as the header came. */
  readonly failureOfAnswer: (status: number, body: string, retryAfter: string | null) => Failure;
  /** The generation holds nothing any more. */
  readonly onEnd: (generation: UpstreamGeneration) => void;
}

type Controller = Dispatcher.DispatchController;
type Headers = Parameters<RequestHandler["onResponseStart"]>[2];

/** One try of a request on one connection. */
interface Attempt {
  readonly connection: Connection;
  controller: Controller | null;
  /** Whether the connection had carried a request before this one. */
  reused: boolean;
  written: boolean;
  status: number;
}

/** A generation on an OpenAI-compatible deployment, from its request to its one end. */
export class UpstreamGeneration implements RunningGeneration {
  readonly #request: GenerationRequest;
  readonly #sink: GenerationSink;
  readonly #connections: Connections;
  readonly #hooks: GenerationHooks;
  #attempt: Attempt | null = null;
  #retried = false;
  #ended = false;
  #paused = false;
  /** null until a good answer begins. */
  #reader: AnswerReader | null = null;
  #refusal: { readonly retryAfter: string | null; text: string } | null = null;
  /** Chunks of one read: undici calls once for each, they are read together. */
  #reads: Uint8Array[] = [];
  #bodyOver = false;
  #timer: NodeJS.Timeout | null = null;
  #drainTimer: NodeJS.Timeout | null = null;

  constructor(
    request: GenerationRequest,
    sink: GenerationSink,
    parts: { readonly connections: Connections; readonly hooks: GenerationHooks },
  ) {
    this.#request = request;
    this.#sink = sink;
    this.#connections = parts.connections;
    this.#hooks = parts.hooks;
  }

  start(): void {
    this.#try(this.#connections.take());
  }

  pause(): void {
    if (this.#ended || this.#paused) return;
    this.#paused = true;
    // A deployment that is not listened to is not silent.
    this.#disarm();
    this.#attempt?.controller?.pause();
  }

  resume(): void {
    if (this.#ended || !this.#paused) return;
    this.#paused = false;
    this.#armForAnswer();
    this.#attempt?.controller?.resume();
  }

  cancel(): void {
    this.#end({ type: "cancelled" }, "drop");
  }

  #try(connection: Connection): void {
    const { body } = this.#request;
    const bodyBytes = body.reduce((bytes, part) => bytes + part.byteLength, 0);
    const attempt: Attempt = {
      connection,
      controller: null,
      reused: false,
      written: false,
      status: 0,
    };
    this.#attempt = attempt;
    this.#arm(this.#request.connectMs, () => this.#fail(unreachable(null)));
    try {
      connection.client.dispatch(
        {
          method: "POST",
          path: this.#request.path,
          headers: {
            ...this.#request.headers,
            "content-length": String(bodyBytes),
          },
          // Undici takes iterables too; its types do not say so.
          body: sentBody(body, bodyBytes, attempt) as Uint8Array,
        },
        this.#handlerOf(attempt),
      );
    } catch (error) {
      this.#fail(failureFromUnknown(error));
    }
  }

  #handlerOf(attempt: Attempt): RequestHandler {
    return {
      onRequestStart: (controller) => {
        attempt.connection.requestsOfSocket += 1;
        attempt.reused = attempt.connection.requestsOfSocket > 1;
        attempt.controller = controller;
        if (this.#ended) controller.abort(new Error("the generation has ended"));
        else this.#armForAnswer();
      },
      onResponseStart: (controller, status, headers) => {
        if (status < 200 || this.#ended) return;
        attempt.status = status;
        this.#begin(status, headers);
        if (this.#paused) controller.pause();
      },
      onResponseData: (_controller, chunk) => {
        if (this.#ended) return;
        if (this.#reads.length === 0) queueMicrotask(() => this.#read());
        this.#reads.push(chunk);
      },
      onResponseEnd: () => {
        this.#bodyOver = true;
        if (!this.#ended) this.#complete();
        else if (this.#drainTimer !== null) this.#connections.giveBack(attempt.connection);
        clearTimeout(this.#drainTimer ?? undefined);
      },
      onResponseError: (_controller, error) => {
        clearTimeout(this.#drainTimer ?? undefined);
        if (!this.#ended) this.#lose(attempt, error);
        else this.#connections.drop(attempt.connection);
      },
    };
  }

  #begin(status: number, headers: Headers): void {
    this.#timer?.refresh();
    if (status >= 300) {
      this.#refusal = { retryAfter: headerText(headers["retry-after"]), text: "" };
      return;
    }
    this.#reader = openAnswerReader(headerText(headers["content-type"]) ?? "", this.#hooks);
    this.#guard(() => this.#sink.accepted());
  }

  /** Everything that came in one read: one batch of events, synchronously. */
  #read(): void {
    const reads = this.#reads;
    const [first] = reads;
    if (this.#ended || first === undefined) return;
    this.#reads = [];
    const bytes = reads.length === 1 ? first : Buffer.concat(reads);
    this.#timer?.refresh();
    const reader = this.#reader;
    if (reader === null) {
      this.#readRefusal(bytes);
      return;
    }
    const begun = reader.begun;
    const fault = this.#caught(() => reader.add(bytes));
    this.#deliver(reader);
    if (fault !== null) this.#fail(fault);
    else if (reader.done) this.#finish(reader, "drain");
    else if (!begun && reader.begun) this.#armForAnswer();
  }

  #deliver(reader: AnswerReader): void {
    const events = reader.takeEvents();
    // Usage alone waits for events or the end: it is nothing that a caller could be shown.
    if (events.length > 0 && !this.#ended)
      this.#guard(() => this.#sink.events(events, reader.takeUsage()));
  }

  #complete(): void {
    this.#read();
    if (this.#ended) return;
    const reader = this.#reader;
    if (reader === null) {
      this.#refuse("free");
      return;
    }
    const fault = this.#caught(() => reader.end());
    this.#deliver(reader);
    if (fault === null) this.#finish(reader, "free");
    else this.#fail(fault);
  }

  /** The answer is over, whole or not. */
  #finish(reader: AnswerReader, connection: Fate): void {
    let ending: Ending | null = null;
    const fault = this.#caught(() => (ending = reader.finish()));
    if (fault === null && ending !== null) {
      this.#deliver(reader);
      this.#end(ending, connection);
    } else this.#end({ type: "failed", failure: fault ?? lost(null) }, connection);
  }

  #readRefusal(bytes: Uint8Array): void {
    const refusal = this.#refusal;
    if (refusal === null) return;
    refusal.text += Buffer.from(bytes).toString("utf8");
    if (refusal.text.length > refusalCharactersMax) this.#refuse("drop");
  }

  #refuse(connection: Fate): void {
    const refusal = this.#refusal ?? { retryAfter: null, text: "" };
    const status = this.#attempt?.status ?? 0;
    const failure = this.#hooks.failureOfAnswer(status, refusal.text, refusal.retryAfter);
    this.#end({ type: "failed", failure }, connection);
  }

  /** The connection broke. */
  #lose(attempt: Attempt, error: Error): void {
    this.#read();
    if (this.#ended) return;
    if (attempt.controller === null) {
      this.#fail(unreachable(error));
      return;
    }
    if (attempt.status === 0) {
      // Nothing can have been generated that anyone has seen: an old connection was closed meanwhile, or the
      // deployment did not even take the whole request.
      if (!this.#retried && isClosure(error) && (attempt.reused || !attempt.written)) {
        this.#retried = true;
        this.#connections.drop(attempt.connection);
        this.#try(this.#connections.takeFresh());
      } else this.#fail(lost(error));
      return;
    }
    const reader = this.#reader;
    if (reader === null) this.#refuse("drop");
    else if (reader.finished) this.#finish(reader, "drop");
    else this.#fail(lost(error));
  }

  #armForAnswer(): void {
    if (this.#paused) return;
    const begun = this.#reader?.begun === true;
    const { firstEventMs, silenceMs } = this.#request;
    this.#arm(begun ? silenceMs : firstEventMs, () => this.#onSilence(begun));
  }

  #onSilence(begun: boolean): void {
    const reader = this.#reader;
    if (reader?.finished === true) this.#finish(reader, "drop");
    else if (this.#refusal !== null) this.#refuse("drop");
    else
      this.#fail(
        new Failure(
          "deployment_timeout",
          begun
            ? "The deployment stopped in the middle of its answer. Try again."
            : "The deployment did not begin to answer in time. Try again with a shorter conversation.",
        ),
      );
  }

  #arm(ms: number, onTime: () => void): void {
    this.#disarm();
    this.#timer = setTimeout(onTime, ms);
  }

  /** Forgets the timer as well: to refresh one that was cleared would start it again. */
  #disarm(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#fail(failureFromUnknown(error));
    }
  }

  #caught(call: () => void): Failure | null {
    try {
      call();
      return null;
    } catch (error) {
      return failureFromUnknown(error);
    }
  }

  #fail(failure: Failure): void {
    this.#end({ type: "failed", failure }, "drop");
  }

  /** The sink hears of it in a task of its own: never before `start` has returned, never inside another call of it. */
  #end(ending: Ending, fate: Fate): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reads = [];
    this.#disarm();
    const connection = this.#attempt?.connection;
    if (connection !== undefined) this.#release(connection, fate);
    queueMicrotask(() => {
      this.#hooks.onEnd(this);
      this.#sink.end(ending);
    });
  }

  #release(connection: Connection, fate: Fate): void {
    if (fate === "drop") this.#connections.drop(connection);
    else if (fate === "free" || this.#bodyOver) this.#connections.giveBack(connection);
    else {
      this.#attempt?.controller?.resume();
      // Some engines leave the body open after their last word.
      this.#drainTimer = setTimeout(() => this.#connections.drop(connection), drainMs);
      this.#drainTimer.unref();
    }
  }
}

/** What becomes of the connection: kept, ended, or kept if the body ends soon. */
type Fate = "free" | "drop" | "drain";

const refusalCharactersMax = 64 * 1024;
const drainMs = 1_000;
const pieceBytes = 64 * 1024;

/** A large body goes out in pieces, so that it is known whether the deployment took the whole of it. */
function sentBody(
  body: readonly Uint8Array[],
  bodyBytes: number,
  attempt: Attempt,
): Uint8Array | Iterable<Uint8Array> {
  if (bodyBytes <= pieceBytes) {
    attempt.written = true;
    return Buffer.concat(body);
  }
  return (function* pieces() {
    for (const part of body)
      for (let from = 0; from < part.byteLength; from += pieceBytes)
        yield part.subarray(from, from + pieceBytes);
    attempt.written = true;
  })();
}

function headerText(value: string | readonly string[] | undefined): string | null {
  return typeof value === "string" ? value : (value?.[0] ?? null);
}

const closures = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE", "ECONNABORTED"]);

function isClosure(error: Error): boolean {
  return "code" in error && typeof error.code === "string" && closures.has(error.code);
}

function lost(cause: Error | null): Failure {
  return new Failure(
    "deployment_failed",
    "The connection to the deployment was lost. Try again.",
    cause === null ? {} : { cause },
  );
}

function unreachable(cause: Error | null): Failure {
  return new Failure("overloaded", "The model cannot be reached at the moment. Try again.", {
    retryAfterSeconds: 5,
    ...(cause === null ? {} : { cause }),
  });
}
