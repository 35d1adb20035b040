import type { GenerationEvent, Usage } from "../../conversation/generation-event.ts";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { type EventDecoder, openEventDecoder } from "../../sse/event-decoder.ts";
import type { Ending } from "../deployment.ts";
import { StreamReader, type StreamReaderParts } from "./stream.ts";

/** Reads the body of one answer. `add` and `end` throw a Failure; what was read before it can still be taken. */
export interface AnswerReader {
  add(bytes: Uint8Array): void;
  /** The body is complete. */
  end(): void;
  takeEvents(): GenerationEvent[];
  takeUsage(): Usage | null;
  /** Whether a frame has come: comments and frames without data are none. */
  readonly begun: boolean;
  /** Frames and comments that came so far, whole ones. */
  readonly signs: number;
  /** Pieces of the answer that came so far. */
  readonly pieces: number;
  /** Whether the deployment has said that nothing more comes. */
  readonly done: boolean;
  /** Whether the answer is whole, though the body may not be. */
  readonly finished: boolean;
  /** Whether it is over because it passed its limit; the deployment goes on. */
  readonly outgrown: boolean;
  /** Ends the answer well, or throws a Failure when it is not whole. */
  finish(): Extract<Ending, { type: "finished" }>;
}

/** Opens the reader that the content type asks for: an event stream, unless the engine says that it did not stream. */
export function openAnswerReader(contentType: string, parts: StreamReaderParts): AnswerReader {
  const stream = new StreamReader(parts);
  return /^application\/(?:[a-z.+-]*\+)?json\b/iu.test(contentType)
    ? new WholeReader(stream)
    : new EventReader(stream);
}

abstract class Reader {
  protected readonly stream: StreamReader;
  protected frames = 0;

  constructor(stream: StreamReader) {
    this.stream = stream;
  }

  get begun(): boolean {
    return this.frames > 0;
  }

  get signs(): number {
    return this.frames;
  }

  get pieces(): number {
    return this.stream.pieces;
  }

  get done(): boolean {
    return this.stream.done;
  }

  get outgrown(): boolean {
    return this.stream.outgrown;
  }

  get finished(): boolean {
    return this.stream.finished;
  }

  takeEvents(): GenerationEvent[] {
    return this.stream.takeEvents();
  }

  takeUsage(): Usage | null {
    return this.stream.takeUsage();
  }

  finish(): Extract<Ending, { type: "finished" }> {
    return { type: "finished", ...this.stream.finish() };
  }
}

class EventReader extends Reader implements AnswerReader {
  readonly #decoder: EventDecoder = openEventDecoder((data, event) => {
    if (data !== "") this.frames += 1;
    this.stream.add(data, event);
  });

  override get signs(): number {
    return this.frames + this.#decoder.comments;
  }

  add(bytes: Uint8Array): void {
    this.#decoder.add(bytes);
  }

  end(): void {
    this.#decoder.end();
  }
}

/** A completion in one piece, from an engine that does not stream. */
class WholeReader extends Reader implements AnswerReader {
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  add(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    if (this.#bytes > limits.upstreamFrameCharactersMax)
      throw new Failure("deployment_failed", "The deployment sent an answer that is too large.");
    this.#pieces.push(Uint8Array.from(bytes));
  }

  end(): void {
    this.frames += 1;
    const text = Buffer.concat(this.#pieces).toString("utf8");
    this.#pieces = [];
    if (text.trim() !== "") this.stream.add(text, "");
  }
}
