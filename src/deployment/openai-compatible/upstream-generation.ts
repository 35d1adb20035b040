import { type Failure, failureFromUnknown } from "../../failure.ts";
import { limits } from "../../limits.ts";
import type { Ending, GenerationSink, RunningGeneration } from "../deployment.ts";
import { type AnswerReader, type AnswerReaderParts, openAnswerReader } from "./answer-reader.ts";
import type { BurstTurns } from "./burst-turns.ts";
import type { Connections, RequestHandler } from "./connections.ts";
import { Deadline, type DeadlineClock } from "./deadline.ts";
import { type Attempt, bodyOfAttempt, byteLengthOf, mayTryAgain } from "./request-attempt.ts";
import { late, lost, unreachable } from "./upstream-failures.ts";
import type { Answering, Asked, Phase, Refused } from "./upstream-phase.ts";

/** One request to a deployment. Times in milliseconds. */
export interface GenerationRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In parts, sent one after another. */
  readonly body: readonly Uint8Array[];
  readonly connectMs: number;
  /** From the request to the first frame, whatever comments come before it; and from one piece of the answer to the next. */
  readonly firstEventMs: number;
  /** Between two signs of life, frames or comments, once a frame has come. */
  readonly silenceMs: number;
}

/** What a running generation needs from outside. */
export interface GenerationHooks extends AnswerReaderParts {
  /** The Failure of an answer with an error status; `retryAfter` as the header came. */
  readonly failureOfAnswer: (status: number, body: string, retryAfter: string | null) => Failure;
  /** The generation holds nothing any more. */
  readonly onEnd: (generation: UpstreamGeneration) => void;
}

type Controller = Asked["controller"];
type Headers = Parameters<RequestHandler["onResponseStart"]>[2];

/** What becomes of the connection: kept, ended, or kept if the body ends soon. */
type Disposal = "keep" | "drop" | "drain";

/** A generation on an OpenAI-compatible deployment, from its request to its one end. */
export class UpstreamGeneration implements RunningGeneration {
  readonly #request: GenerationRequest;
  readonly #sink: GenerationSink;
  readonly #connections: Connections;
  readonly #hooks: GenerationHooks;
  readonly #clock: DeadlineClock;
  readonly #turns: BurstTurns;
  readonly #deadline: Deadline;
  #phase: Phase = { type: "new" };
  /** The reader of the answer has asked for a pause: of the connection, and of every limit on time. */
  #paused = false;
  /** When the first frame is late; null until a connection carries the request. */
  #firstEventDueMs: number | null = null;

  constructor(
    request: GenerationRequest,
    sink: GenerationSink,
    parts: {
      readonly connections: Connections;
      readonly hooks: GenerationHooks;
      readonly clock: DeadlineClock;
      readonly turns: BurstTurns;
    },
  ) {
    this.#request = request;
    this.#sink = sink;
    this.#connections = parts.connections;
    this.#hooks = parts.hooks;
    this.#clock = parts.clock;
    this.#turns = parts.turns;
    this.#deadline = new Deadline(parts.clock, () => this.#onLate());
  }

  start(): void {
    this.#try({
      connection: this.#connections.take(),
      isRetry: false,
      reused: false,
      written: false,
    });
  }

  pause(): void {
    if (this.#isOver() || this.#paused) return;
    this.#paused = true;
    // While the connection is paused, its silence is not the deployment's.
    this.#deadline.hold();
    if ("controller" in this.#phase) this.#phase.controller.pause();
  }

  resume(): void {
    if (this.#isOver() || !this.#paused) return;
    this.#paused = false;
    this.#deadline.release();
    this.#listen();
  }

  cancel(): void {
    this.#end({ type: "cancelled" }, "drop");
  }

  /** Lets the connection be read again, unless something still holds it. */
  #listen(): void {
    const phase = this.#phase;
    if (this.#paused || !("controller" in phase)) return;
    if (phase.type === "answering" && phase.burst.waits) return;
    phase.controller.resume();
  }

  #isOver(): boolean {
    return this.#phase.type === "over" || this.#phase.type === "draining";
  }

  #try(attempt: Attempt): void {
    this.#phase = { type: "connecting", attempt };
    const { body, connectMs, headers, path } = this.#request;
    const connectedMs = this.#deadline.nowMs + connectMs;
    this.#deadline.set(Math.min(connectedMs, this.#firstEventDueMs ?? connectedMs));
    try {
      attempt.connection.client.dispatch(
        {
          method: "POST",
          path,
          headers: { ...headers, "content-length": String(byteLengthOf(body)) },
          // Undici takes iterables too; its types do not say so.
          body: bodyOfAttempt(attempt, body) as Uint8Array,
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
        if (this.#phase.type === "connecting") this.#ask(attempt, controller);
        else controller.abort(new Error("the generation has ended"));
      },
      onResponseStart: (_controller, status, headers) => {
        const phase = this.#phase;
        if (status < 200 || phase.type !== "asked") return;
        if (status < 300) this.#accept(phase, headers);
        else this.#hearRefusal(phase, status, headers);
      },
      onResponseData: (_controller, chunk) => {
        const phase = this.#phase;
        if (phase.type === "refused") this.#addToRefusal(phase, chunk);
        if (phase.type !== "answering") return;
        if (phase.unread.length === 0) queueMicrotask(() => this.#read(phase, "drain"));
        phase.unread.push(chunk);
        if (phase.burst.add(chunk.byteLength)) phase.controller.pause();
      },
      onResponseEnd: () => {
        const phase = this.#phase;
        if (phase.type === "answering") this.#complete(phase);
        else if (phase.type === "refused") this.#refuse(phase, "keep");
        else this.#endDrain("keep");
      },
      onResponseError: (_controller, error) => {
        const phase = this.#phase;
        if (phase.type === "draining") this.#endDrain("drop");
        else if (phase.type === "over") this.#connections.drop(attempt.connection);
        else this.#lose(error);
      },
    };
  }

  #ask(attempt: Attempt, controller: Controller): void {
    this.#phase = { type: "asked", attempt, controller };
    this.#firstEventDueMs ??= this.#deadline.nowMs + this.#request.firstEventMs;
    this.#deadline.set(this.#firstEventDueMs);
    if (this.#paused) controller.pause();
  }

  #accept({ attempt, controller }: Asked, headers: Headers): void {
    this.#phase = {
      type: "answering",
      attempt,
      controller,
      reader: openAnswerReader(headerText(headers["content-type"]) ?? "", this.#hooks),
      unread: [],
      burst: this.#turns.open(() => this.#listen()),
      signs: 0,
      pieces: 0,
      pieceMs: 0,
      isFinished: false,
    };
    if (this.#paused) controller.pause();
    this.#guard(() => this.#sink.accepted());
  }

  #hearRefusal({ attempt, controller }: Asked, status: number, headers: Headers): void {
    const retryAfter = headerText(headers["retry-after"]);
    const body: Uint8Array[] = [];
    this.#phase = { type: "refused", attempt, controller, status, retryAfter, bytes: 0, body };
    const soonMs = this.#deadline.nowMs + limits.upstreamRefusalMs;
    this.#deadline.set(Math.min(soonMs, this.#firstEventDueMs ?? soonMs));
  }

  #addToRefusal(phase: Refused, chunk: Uint8Array): void {
    phase.bytes += chunk.byteLength;
    // Copied: the connection may use its buffer again.
    phase.body.push(Uint8Array.from(chunk));
    if (phase.bytes > limits.upstreamRefusalBytesMax) this.#refuse(phase, "drop");
  }

  #refuse({ body, retryAfter, status }: Refused, disposal: Disposal): void {
    const text = Buffer.concat(body).toString("utf8", 0, limits.upstreamRefusalBytesMax);
    const failure = this.#hooks.failureOfAnswer(status, text, retryAfter);
    this.#end({ type: "failed", failure }, disposal);
  }

  /** Everything that came in one read: one batch of events, synchronously. */
  #read(phase: Answering, disposal: Disposal): void {
    const { unread } = phase;
    const [first] = unread;
    if (this.#phase !== phase || first === undefined) return;
    const bytes = unread.length === 1 ? first : Buffer.concat(unread);
    unread.length = 0;
    const { reader } = phase;
    const fault = this.#caught(() => reader.add(bytes));
    this.#deliver(reader);
    if (fault !== null) this.#fail(fault);
    else if (reader.done) this.#finish(phase, reader.outgrown ? "drop" : disposal);
    else if (this.#phase === phase) this.#moveDeadline(phase);
  }

  /**
   * Before the first frame nothing moves the limit. Between frames each sign of life does, but not beyond the time that
   * the next piece of the answer has. Behind the finish nothing does.
   */
  #moveDeadline(phase: Answering): void {
    const { reader } = phase;
    if (!reader.begun || phase.isFinished || reader.signs === phase.signs) return;
    const { nowMs } = this.#deadline;
    const { firstEventMs, silenceMs } = this.#request;
    if (phase.signs === 0 || reader.pieces > phase.pieces) phase.pieceMs = nowMs;
    phase.signs = reader.signs;
    phase.pieces = reader.pieces;
    phase.isFinished = reader.finished;
    const nextPieceMs = phase.pieceMs + Math.max(firstEventMs, silenceMs);
    this.#deadline.set(Math.min(nowMs + silenceMs, nextPieceMs));
  }

  #deliver(reader: AnswerReader): void {
    const events = reader.takeEvents();
    // Usage without events waits for the next batch or the end, as it changes nothing that a caller sees.
    if (events.length > 0 && !this.#isOver())
      this.#guard(() => this.#sink.events(events, reader.takeUsage()));
  }

  /** The body has ended. */
  #complete(phase: Answering): void {
    this.#read(phase, "keep");
    if (this.#phase !== phase) return;
    const fault = this.#caught(() => phase.reader.end());
    this.#deliver(phase.reader);
    if (fault === null) this.#finish(phase, "keep");
    else this.#fail(fault);
  }

  /** The answer is over, whole or not. */
  #finish({ reader }: Answering, disposal: Disposal): void {
    let ending: Ending | null = null;
    const fault = this.#caught(() => (ending = reader.finish()));
    this.#deliver(reader);
    this.#end(ending ?? { type: "failed", failure: fault ?? lost(null) }, disposal);
  }

  /** The connection broke. */
  #lose(error: Error): void {
    if (this.#phase.type === "answering") this.#read(this.#phase, "drop");
    const phase = this.#phase;
    switch (phase.type) {
      case "connecting":
        this.#fail(unreachable(error));
        return;
      case "asked":
        this.#loseRequest(phase.attempt, error);
        return;
      case "refused":
        this.#refuse(phase, "drop");
        return;
      case "answering":
        if (phase.reader.finished) this.#finish(phase, "drop");
        else this.#fail(lost(error));
        return;
      case "new":
      case "draining":
      case "over":
        return;
      default:
        phase satisfies never;
    }
  }

  #loseRequest(attempt: Attempt, error: Error): void {
    if (!mayTryAgain(attempt, error)) {
      // Closed twice without a byte: the deployment is on its way out, and may be back soon.
      this.#fail(attempt.isRetry ? unreachable(error) : lost(error));
      return;
    }
    this.#connections.drop(attempt.connection);
    const connection = this.#connections.takeFresh();
    this.#try({ connection, isRetry: true, reused: false, written: false });
  }

  #onLate(): void {
    const phase = this.#phase;
    if (phase.type === "connecting") this.#fail(unreachable(null));
    else if (phase.type === "refused") this.#refuse(phase, "drop");
    else if (phase.type === "answering" && phase.reader.finished) this.#finish(phase, "drop");
    else this.#fail(late(phase.type === "answering" && phase.reader.begun));
  }

  #guard(call: () => void): void {
    const fault = this.#caught(call);
    if (fault !== null) this.#fail(fault);
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

  /** Calls the sink in a microtask: never before `start` has returned, never inside another call of the sink. */
  #end(ending: Ending, disposal: Disposal): void {
    const phase = this.#phase;
    if (phase.type === "over" || phase.type === "draining") return;
    this.#deadline.clear();
    if (phase.type === "answering") phase.burst.end();
    // Before the connection is released: undici may call `onResponseError` at once.
    this.#phase = { type: "over" };
    if (phase.type !== "new") this.#release(phase, disposal);
    const usage = phase.type === "answering" ? phase.reader.takeUsage() : null;
    queueMicrotask(() => {
      this.#hooks.onEnd(this);
      // What the engine counted behind its last events is charged as well.
      if (usage !== null && ending.type === "cancelled") this.#sink.events([], usage);
      this.#sink.end(ending);
    });
  }

  #release(phase: Exclude<Phase, { type: "new" | "draining" | "over" }>, disposal: Disposal): void {
    const { attempt } = phase;
    if (disposal === "drain" && "controller" in phase) {
      const timer = this.#clock.timers.set(() => this.#endDrain("drop"), drainMs);
      this.#phase = { type: "draining", attempt, timer };
      phase.controller.resume();
    } else if (disposal === "keep") this.#connections.giveBack(attempt.connection);
    else this.#connections.drop(attempt.connection);
  }

  #endDrain(disposal: "keep" | "drop"): void {
    const phase = this.#phase;
    if (phase.type !== "draining") return;
    this.#phase = { type: "over" };
    this.#clock.timers.clear(phase.timer);
    const { connection } = phase.attempt;
    if (disposal === "keep") this.#connections.giveBack(connection);
    else this.#connections.drop(connection);
  }
}

/** How long the end of a body is waited for: some engines leave it open after `[DONE]`. */
const drainMs = 1_000;

function headerText(value: string | readonly string[] | undefined): string | null {
  return typeof value === "string" ? value : (value?.[0] ?? null);
}
