import { limits } from "../../limits.ts";

/**
 * The `input` that the arguments of a call stand for: what the SDK makes of the same text when it is streamed. Nothing
 * is `{}`; text that was cut off is closed after its last complete value; what is no JSON at all, on which the SDK
 * throws, is `{}` too, so that the rest of the answer can be read.
 */
export function parseToolInput(argumentsText: string): unknown {
  const { deepest, closed } = scanJson(argumentsText);
  // Deeper input could not come back in a history, and writing it again would exhaust the stack.
  if (deepest > limits.bodyNestingMax) return {};
  const whole = parseJson(argumentsText);
  if (whole !== undefined) return whole;
  return (closed === null ? undefined : parseJson(closed)) ?? {};
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The model wrote no JSON; `parseToolInput` closes what was cut off, or gives `{}`.
    return undefined;
  }
}

const jsonNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/u;
const literals: readonly string[] = ["true", "false", "null"];

/** How deep the brackets go, and the text closed after its last complete value; null: it is no cut-off JSON. */
function scanJson(text: string): { readonly deepest: number; readonly closed: string | null } {
  const closers: string[] = [];
  let deepest = 0;
  let end = 0;
  let previous = "";
  for (let at = 0, next = 0; at < text.length; at = next) {
    next = endOfToken(text, at);
    // A string that reaches beyond the text was cut off: nothing after it.
    if (next > text.length) break;
    const first = text.charAt(at);
    if (first.trim() === "") continue;
    if (first === "{" || first === "[") {
      deepest = Math.max(deepest, closers.push(first === "{" ? "}" : "]"));
      end = next;
    } else if (first === "}" || first === "]") {
      if (closers.pop() !== first) return { deepest, closed: null };
      end = next;
    } else if (closers.at(-1) !== "}" || previous === ":") {
      if (isCompleteValue(text.slice(at, next), next === text.length)) end = next;
    }
    previous = first;
  }
  const closed = closers.length === 0 ? null : text.slice(0, end) + closers.toReversed().join("");
  return { deepest, closed };
}

function isCompleteValue(token: string, isLast: boolean): boolean {
  if (token.startsWith('"') || literals.includes(token)) return true;
  // More digits may follow a number at the end.
  return !isLast && jsonNumber.test(token);
}

/** The position behind the string, mark, white space or word that begins at `at`. */
function endOfToken(text: string, at: number): number {
  if (text[at] === '"') return endOfString(text, at + 1);
  if (!isWord(text.charAt(at))) return at + 1;
  let end = at + 1;
  while (end < text.length && isWord(text.charAt(end))) end += 1;
  return end;
}

function isWord(character: string): boolean {
  return !'"{}[]:, \n\r\t'.includes(character);
}

function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length + 1;
}
