import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";

/**
 * `JSON.parse` in bounded time: many small values take a hundred times as long as the same number of characters in a
 * text. Throws a Failure for too many values, and what `JSON.parse` throws.
 */
export function parseFrame(text: string): unknown {
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
