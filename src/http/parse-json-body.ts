import { isUtf8 } from "node:buffer";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** Parses a body as a JSON object; throws a Failure that says what to mend. */
export function parseJsonBody(bytes: Uint8Array<ArrayBuffer>): Readonly<Record<string, unknown>> {
  if (!isUtf8(bytes)) throw invalid("The body is not valid UTF-8.");
  if (hasMoreValues(bytes, limits.bodyValuesMax))
    throw invalid(
      `The body has more than ${String(limits.bodyValuesMax)} values. Send lists and objects of fewer entries, or as text.`,
    );
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const body = parse(buffer.toString("utf8").replace(/^\uFEFF/, ""));
  if (!isObject(body)) throw invalid("The body must be a JSON object.");
  if (isDeeper(body, limits.bodyNestingMax))
    throw invalid(`The body is nested deeper than ${String(limits.bodyNestingMax)} levels.`);
  return body;
}

function parse(text: string): unknown {
  if (text.trim() === "") throw invalid("The body is empty: send a JSON object.");
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message of JSON.parse quotes the body, so only the position is taken from it.
    const position = / at position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
    const where = position === undefined ? "" : ` It breaks at character ${position}.`;
    throw new Failure("invalid_request", `The body is not valid JSON.${where}`, { cause: error });
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Counts what opens a list or an object, and what stands between two values. An empty object takes three bytes to send and
 * a hundred to hold: without a bound on their number one body of 4 MiB takes a second to parse, and 200 MiB.
 */
function hasMoreValues(bytes: Uint8Array, valuesMax: number): boolean {
  if (bytes.byteLength <= valuesMax) return false;
  let values = 0;
  for (let index = 0; index < bytes.byteLength; index += 1) {
    const byte = bytes[index];
    if (byte === quote) index = endOfString(bytes, index);
    else if (byte === comma || byte === openBrace || byte === openBracket) values += 1;
    if (values > valuesMax) return true;
  }
  return false;
}

/** Where the quote stands that ends the string that begins at `from`. */
function endOfString(bytes: Uint8Array, from: number): number {
  let index = from + 1;
  for (; index < bytes.byteLength && bytes[index] !== quote; index += 1)
    if (bytes[index] === backslash) index += 1;
  return index;
}

// No byte of a longer character is one of these.
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const openBracket = 0x5b;

/** Recursion ends at the limit, so input cannot exhaust the stack. */
function isDeeper(value: object, levelsLeft: number): boolean {
  if (levelsLeft === 0) return true;
  const children: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return children.some(
    (child) => typeof child === "object" && child !== null && isDeeper(child, levelsLeft - 1),
  );
}

function invalid(message: string): Failure {
  return new Failure("invalid_request", message);
}
