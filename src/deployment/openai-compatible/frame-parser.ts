import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";

type Members = Record<string, unknown>;

/** A frame, cut around the two values that change from one to the next. */
interface Pattern {
  /** Its two values are replaced at each match. */
  readonly chunk: Members;
  /** Where it holds the piece of the answer that a frame brings. */
  readonly slot: Slot;
  readonly before: string;
  /** What follows the slot: as far as the usage, when that comes last in a frame, or to the frame's end. */
  readonly after: string;
  readonly hasUsage: boolean;
}

interface Slot {
  readonly holder: Members;
  readonly name: string;
}

/** A longer frame is not learned: it hardly ever comes again. */
const patternCharactersMax = 4_096;

/** Learning a frame takes as long as parsing fifty, so a short answer is over before learning has paid. */
const framesBetweenLearning = 16;

/**
 * `JSON.parse` for the frames of one stream. Nearly all of them differ from the one before in two values only: the piece
 * of the answer, and the usage. Where all other text is equal, these two alone are parsed. What is a JSON value by itself
 * is the same value in its place, so the result is that of parsing everything, for a third of the work.
 */
export class FrameParser {
  readonly #between: number;
  #pattern: Pattern | null = null;
  /** Frames until one may be learned again. */
  #framesLeft: number;
  #learnEvery: number;
  /** Of the pattern that was learned last. */
  #matches = 0;

  constructor(between = framesBetweenLearning) {
    this.#between = between;
    this.#framesLeft = between;
    this.#learnEvery = between / 2;
  }

  /** The value of a frame, good until the next call, which may fill its objects anew. Throws as `parseFrame` does. */
  parse(frame: string): unknown {
    this.#framesLeft -= 1;
    if (
      this.#pattern !== null &&
      frame.length <= limits.upstreamFrameUnseenCharactersMax &&
      fill(this.#pattern, frame)
    ) {
      this.#matches += 1;
      return this.#pattern.chunk;
    }
    const chunk = parseFrame(frame);
    if (this.#framesLeft <= 0) this.#learn(frame, chunk);
    return chunk;
  }

  /** Learns a frame; where few frames matched the pattern before, the next is learned after twice as many. */
  #learn(frame: string, chunk: unknown): void {
    if (frame.length > patternCharactersMax || findSlot(chunk) === null) return;
    this.#pattern = (frame.includes(usageName) ? cut(frame, true) : null) ?? cut(frame, false);
    this.#learnEvery = this.#matches >= this.#between / 2 ? this.#between : this.#learnEvery * 2;
    this.#framesLeft = this.#learnEvery;
    this.#matches = 0;
  }
}

/** Puts the values of a frame into the pattern's chunk; false: the frame is another one. */
function fill({ chunk, slot, before, after, hasUsage }: Pattern, frame: string): boolean {
  // Not `startsWith`, which compares character by character.
  if (frame.slice(0, before.length) !== before) return false;
  const end = frame.indexOf(after, before.length);
  const rest = end + after.length;
  if (end === -1 || (hasUsage ? !frame.endsWith("}") : rest !== frame.length)) return false;
  try {
    const value: unknown = JSON.parse(frame.slice(before.length, end));
    if (hasUsage) chunk["usage"] = JSON.parse(frame.slice(rest, -1));
    slot.holder[slot.name] = value;
    return true;
  } catch {
    return false;
  }
}

/** The pattern of a frame; null: its values could not be located for certain. */
function cut(shared: string, hasUsage: boolean): Pattern | null {
  // Pieces of a string keep the whole of it, here everything that came in one read: a copy keeps this frame.
  const frame = Buffer.from(shared).toString();
  const chunk = JSON.parse(frame) as Members;
  const slot = findSlot(chunk);
  if (slot === null) return null;
  const value = JSON.stringify(slot.holder[slot.name]);
  const start = frame.indexOf(value);
  const end = start + value.length;
  const before = frame.slice(0, start);
  const after = hasUsage
    ? frame.slice(end, frame.indexOf(usageName, end) + usageName.length)
    : frame.slice(end);
  const pattern = { chunk, slot, before, after, hasUsage };
  return holds(pattern) ? pattern : null;
}

const usageName = ',"usage":';

/**
 * Whether a pattern is right: the text in its slot may stand elsewhere in the frame too, and `,"usage":` within a text. A
 * frame with other values must give the same chunk when it fills the pattern as when it is parsed whole.
 */
function holds(pattern: Pattern): boolean {
  const { before, after, chunk, hasUsage } = pattern;
  const probe = `${before}"~"${after}${hasUsage ? `"~"}` : ""}`;
  try {
    const whole: unknown = JSON.parse(probe);
    return fill(pattern, probe) && JSON.stringify(chunk) === JSON.stringify(whole);
  } catch {
    return false;
  }
}

function findSlot(chunk: unknown): Slot | null {
  const delta = memberOf(memberOf(memberOf(chunk, "choices"), 0), "delta");
  const called = memberOf(memberOf(memberOf(delta, "tool_calls"), 0), "function");
  return (
    slotOf(delta, "content") ??
    slotOf(delta, "reasoning_content") ??
    slotOf(delta, "reasoning") ??
    slotOf(called, "arguments")
  );
}

function slotOf(holder: unknown, name: string): Slot | null {
  const value = memberOf(holder, name);
  return typeof value === "string" && value !== "" ? { holder: holder as Members, name } : null;
}

function memberOf(value: unknown, name: string | number): unknown {
  return typeof value === "object" && value !== null ? (value as Members)[name] : undefined;
}

/**
 * `JSON.parse` in bounded time: many small values take a hundred times as long as the same number of characters in a
 * text. Throws a Failure for too many values, and what `JSON.parse` throws.
 */
function parseFrame(text: string): unknown {
  if (
    text.length > limits.upstreamFrameUnseenCharactersMax &&
    hasMoreValues(text, limits.upstreamFrameValuesMax)
  )
    throw new Failure("deployment_failed", "The deployment sent a frame of too many values.");
  return JSON.parse(text);
}

/** Counts what opens a list or an object, and what stands between two values. */
function hasMoreValues(text: string, valuesMax: number): boolean {
  let values = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfString(text, index);
    else if (code === comma || code === openBrace || code === openBracket) values += 1;
    if (values > valuesMax) return true;
  }
  return false;
}

/** Where the quote stands that ends the string that begins at `from`; the end of a text without one. */
function endOfString(text: string, from: number): number {
  let index = from + 1;
  for (; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) break;
    if (code === backslash) index += 1;
  }
  return index;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const openBracket = 0x5b;
