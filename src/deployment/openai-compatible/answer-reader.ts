import { credibleUsage, unknownUsage } from "../../conversation/credible-usage.ts";
import type { FinishReason, GenerationEvent, Usage } from "../../conversation/generation-event.ts";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { type EventDecoder, openEventDecoder } from "../../sse/event-decoder.ts";
import type { Ending } from "../deployment.ts";
import { FrameParser } from "./frame-parser.ts";
import { PartSequencer } from "./part-sequencer.ts";

/** What the reader of one answer needs from outside. */
export interface AnswerReaderParts {
  readonly newId: (prefix: string) => string;
  /** Turns an error object inside the stream into a Failure. */
  readonly failureOf: (error: unknown) => Failure;
  /** The most tokens that the input can have. */
  readonly inputTokensMax: number;
  /** The output limit that was sent. */
  readonly outputTokensMax: number;
}

/** Opens the reader that the content type asks for: an event stream, unless the engine says that it did not stream. */
export function openAnswerReader(contentType: string, parts: AnswerReaderParts): AnswerReader {
  const isWhole = /^application\/(?:[a-z.+-]*\+)?json\b/iu.test(contentType);
  return new AnswerReader(isWhole ? openWholeBody : openEventDecoder, parts);
}

type Members = Readonly<Record<string, unknown>>;

/**
 * Reads the body of one chat completion: bytes to events, usage and the finish. `add`, `end` and `finish` throw a Failure
 * for what makes no sense and for an error inside; what was read before it can still be taken.
 */
export class AnswerReader {
  readonly #parts: AnswerReaderParts;
  readonly #body: EventDecoder;
  readonly #frames = new FrameParser();
  readonly #sequencer: PartSequencer;
  /** Tokens that the answer may have before it counts as outgrown. */
  readonly #outputMost: number;
  #framesWithData = 0;
  /** Figure by figure the last that can be. */
  #usage: Usage = unknownUsage;
  #hasNewUsage = false;
  #reason: string | null = null;
  #stopSequence: string | null = null;
  #done = false;
  #outgrown = false;

  constructor(
    openBody: (onEvent: (data: string, event: string) => void) => EventDecoder,
    parts: AnswerReaderParts,
  ) {
    this.#parts = parts;
    this.#body = openBody((data, event) => this.#addFrame(data, event));
    this.#outputMost = parts.outputTokensMax + limits.outputOvershootMax;
    this.#sequencer = new PartSequencer(parts.newId);
  }

  /** Whether a frame has come: comments and frames without data are none. */
  get begun(): boolean {
    return this.#framesWithData > 0;
  }

  /** Frames and comments that came so far, whole ones. */
  get signs(): number {
    return this.#framesWithData + this.#body.comments;
  }

  /** Pieces of the answer that came so far. */
  get pieces(): number {
    return this.#sequencer.pieces;
  }

  /** Whether the engine has said that nothing more comes. */
  get done(): boolean {
    return this.#done;
  }

  /** Whether the engine has said why it stopped: what is lost after that was not the answer. */
  get finished(): boolean {
    return this.#reason !== null;
  }

  /** Whether the answer passed its limit and was ended here; the engine goes on. */
  get outgrown(): boolean {
    return this.#outgrown;
  }

  add(bytes: Uint8Array): void {
    this.#body.add(bytes);
  }

  /** The body is complete. */
  end(): void {
    this.#body.end();
  }

  /** The events since the last time. */
  takeEvents(): GenerationEvent[] {
    return this.#sequencer.take();
  }

  /** Usage that came since the last time, NaN for figures that the engine did not give; null: none came. */
  takeUsage(): Usage | null {
    if (!this.#hasNewUsage) return null;
    this.#hasNewUsage = false;
    return this.#usage;
  }

  /** Ends every part; throws a Failure when the engine never said why it stopped. */
  finish(): Extract<Ending, { type: "finished" }> {
    if (this.#reason === null)
      throw new Failure(
        "deployment_failed",
        "The deployment ended its answer without saying why. Try again.",
      );
    this.#sequencer.end();
    const reason = finishReason(this.#reason, this.#sequencer.hasCalls);
    const stopSequence = reason === "stop" ? this.#stopSequence : null;
    return {
      type: "finished",
      finish: { reason, stopSequence },
      usage: this.#usage === unknownUsage ? null : this.#usage,
    };
  }

  #addFrame(data: string, event: string): void {
    if (data !== "") this.#framesWithData += 1;
    if (this.#done || data === "") return;
    if (data === "[DONE]") {
      this.#done = true;
      return;
    }
    const chunk = parseObject(data, this.#frames);
    if (event === "error" || isError(chunk)) throw this.#parts.failureOf(chunk);
    // Usage alone, or a sign of life, has no choices.
    const { choices, usage } = chunk;
    const choice: unknown = Array.isArray(choices) ? choices[0] : null;
    if (isMembers(choice) && !(typeof choice["index"] === "number" && choice["index"] > 0))
      this.#addChoice(choice);
    const found = isMembers(usage) ? usageOf(usage) : null;
    if (found !== null) this.#addUsage(found);
    if (this.#reason === null && this.#hasOutgrown(found)) this.#endAsLength();
  }

  #addUsage(found: Usage): void {
    const { inputTokensMax, outputTokensMax } = this.#parts;
    const outputTokensMin = this.#sequencer.pieces > 0 ? 1 : 0;
    const bounds = { inputTokensMax, outputTokensMin, outputTokensMax };
    const known = credibleUsage(found, this.#usage, bounds);
    if (Number.isNaN(known.inputTokens) && Number.isNaN(known.outputTokens)) return;
    this.#usage = known;
    this.#hasNewUsage = true;
  }

  /**
   * Whether the engine goes on beyond the limit that it was given: by its own running usage, else by the pieces, which
   * are tokens with most engines; by the characters in any case. A usage far beyond is no count.
   */
  #hasOutgrown(found: Usage | null): boolean {
    const { characters, pieces } = this.#sequencer;
    const most = this.#outputMost;
    if (characters > most * limits.charactersPerTokenMax) return true;
    if (pieces > 2 * most && Number.isNaN(this.#usage.outputTokens)) return true;
    return found !== null && found.outputTokens > most && found.outputTokens <= 2 * most;
  }

  #endAsLength(): void {
    this.#sequencer.end();
    this.#reason = "length";
    this.#outgrown = true;
    this.#done = true;
  }

  #addChoice(choice: Members): void {
    this.#sequencer.endChunk();
    const delta = choice["delta"] ?? choice["message"];
    if (isMembers(delta)) this.#addDelta(delta);
    const reason = choice["finish_reason"];
    if (typeof reason !== "string" || reason === "") return;
    if (brokenOff.has(reason))
      throw new Failure("deployment_failed", "The deployment broke its answer off. Try again.");
    this.#reason = reason;
    // vLLM's and SGLang's fields; a number is a token's id.
    const stop = choice["stop_reason"] ?? choice["matched_stop"];
    if (typeof stop === "string" && stop !== "") this.#stopSequence = stop;
    this.#sequencer.end();
  }

  #addDelta(delta: Members): void {
    // An engine that sends both fields sends the same in both.
    const reasoning = textOf(delta["reasoning_content"]) || textOf(delta["reasoning"]);
    if (reasoning !== "") this.#sequencer.add("reasoning", reasoning);
    const { content, refusal, tool_calls: calls } = delta;
    if (typeof content === "string") this.#sequencer.add("text", content);
    else if (Array.isArray(content)) this.#addContentParts(content);
    // A refusal is what the model says instead of an answer: text to every format.
    if (typeof refusal === "string") this.#sequencer.add("text", refusal);
    if (Array.isArray(calls)) for (const call of calls) this.#addCall(call);
  }

  #addContentParts(content: readonly unknown[]): void {
    for (const part of content)
      if (isMembers(part)) this.#sequencer.add("text", textOf(part["text"]));
  }

  #addCall(call: unknown): void {
    if (!isMembers(call)) return;
    const { index, id } = call;
    const called = isMembers(call["function"]) ? call["function"] : {};
    this.#sequencer.addCall({
      index: typeof index === "number" ? index : null,
      id: textOf(id),
      name: textOf(called["name"]),
      arguments: argumentsText(called["arguments"]),
    });
  }
}

/** The body of an engine that does not stream: a completion in one piece, which is one frame. */
function openWholeBody(onEvent: (data: string, event: string) => void): EventDecoder {
  let pieces: Uint8Array[] = [];
  let held = 0;
  return {
    comments: 0,
    add(bytes) {
      held += bytes.length;
      if (held > limits.upstreamFrameCharactersMax)
        throw new Failure("deployment_failed", "The deployment sent an answer that is too large.");
      // Copied: the connection may use its buffer again.
      pieces.push(Uint8Array.from(bytes));
    },
    end() {
      const text = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      if (text.trim() !== "") onEvent(text, "");
    },
  };
}

/** Some engines give the arguments as an object. */
function argumentsText(value: unknown): string {
  if (typeof value === "string") return value;
  if (!isMembers(value)) return "";
  try {
    return JSON.stringify(value);
  } catch (error) {
    // Some versions of Node give up on what is nested very deeply.
    throw new Failure("deployment_failed", "The deployment sent arguments that cannot be read.", {
      cause: error,
    });
  }
}

/** Reasons with which engines end an answer that is not complete. */
const brokenOff = new Set(["error", "abort", "aborted", "cancelled"]);

const finishReasons: Readonly<Record<string, FinishReason>> = {
  length: "length",
  max_tokens: "length",
  model_length: "length",
  content_filter: "content-filter",
};

/** Any other reason is a model that came to its end; with calls it ended to have them made. */
function finishReason(reason: string, hasCalls: boolean): FinishReason {
  if (Object.hasOwn(finishReasons, reason)) return finishReasons[reason] ?? "stop";
  return hasCalls ? "tool-calls" : "stop";
}

/** Figures as the engine gave them, unchecked; NaN: it gave none. */
function usageOf(usage: Members): Usage {
  return {
    inputTokens: figure(usage["prompt_tokens"]),
    cachedInputTokens: detail(usage["prompt_tokens_details"], "cached_tokens"),
    outputTokens: figure(usage["completion_tokens"]),
    reasoningTokens:
      detail(usage["completion_tokens_details"], "reasoning_tokens") ||
      detail(usage, "reasoning_tokens"),
  };
}

function figure(value: unknown): number {
  return typeof value === "number" ? value : Number.NaN;
}

function detail(details: unknown, name: string): number {
  const value = isMembers(details) ? details[name] : null;
  return typeof value === "number" ? value : 0;
}

function parseObject(data: string, frames: FrameParser): Members {
  let value: unknown;
  try {
    value = frames.parse(data);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("deployment_failed", "The deployment sent something that is no JSON.", {
      cause: error,
    });
  }
  if (!isMembers(value))
    throw new Failure("deployment_failed", "The deployment sent something that is no chunk.");
  return value;
}

function isError(chunk: Members): boolean {
  const { error } = chunk;
  if (error !== undefined && error !== null) return true;
  return chunk["object"] === "error" || chunk["type"] === "error";
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
