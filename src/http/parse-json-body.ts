import { isUtf8 } from "node:buffer";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** Parses a body as a JSON object; throws a Failure that says what to mend. */
export function parseJsonBody(bytes: Uint8Array<ArrayBuffer>): Readonly<Record<string, unknown>> {
  if (!isUtf8(bytes)) throw invalid("The body is not valid UTF-8.");
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
