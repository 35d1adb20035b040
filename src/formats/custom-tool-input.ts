/** Reads the raw text of a custom tool's call out of the arguments that the model writes for it. */
export interface CustomToolInputDecoder {
  /** The input that became certain with this piece of the arguments; often "". */
  push(piece: string): string;
  /** What is left once the arguments are complete. The decoder is used up. */
  finish(): string;
}

/**
 * Opens a decoder. The model is asked for `{"input": "..."}`: from the opening quote on, the JSON string is decoded as
 * it arrives, and what follows its closing quote is ignored. Arguments that begin otherwise are the input as they are.
 * The result depends on the whole text only, not on where it was cut, and the work is linear in it.
 */
export function openCustomToolInputDecoder(): CustomToolInputDecoder {
  const opening = openOpening();
  const string = openStringDecoder();
  let mode: "opening" | "string" | "verbatim" = "opening";
  let highSurrogate = "";

  /** Half a surrogate pair waits for its other half, since frames travel as UTF-8. */
  function whole(text: string): string {
    if (text === "") return "";
    const joined = highSurrogate + text;
    const last = joined.charCodeAt(joined.length - 1);
    if (last < 0xd800 || last > 0xdbff) {
      highSurrogate = "";
      return joined;
    }
    highSurrogate = joined.slice(-1);
    return joined.slice(0, -1);
  }

  function begin(piece: string): string {
    const end = opening.match(piece);
    if (end === "undecided") return "";
    if (end === "different") {
      mode = "verbatim";
      return opening.takeHeld();
    }
    mode = "string";
    return string.push(piece, end);
  }

  return {
    push(piece) {
      if (mode === "opening") return whole(begin(piece));
      return whole(mode === "string" ? string.push(piece, 0) : piece);
    },
    finish() {
      // An answer cut inside an escape ends before it: half an escape is no text.
      const rest = mode === "opening" ? opening.takeHeld() : highSurrogate;
      highSurrogate = "";
      return rest;
    },
  };
}

/** The input that complete arguments stand for: what the incremental decoder says of them. */
export function decodeCustomToolInput(argumentsText: string): string {
  const decoder = openCustomToolInputDecoder();
  return decoder.push(argumentsText) + decoder.finish();
}

/** Compares the beginning with `{ "input" : "`, where white space may stand between the four tokens. */
function openOpening(): {
  /** The position behind the opening quote of the value, or why there is none. */
  match(piece: string): number | "undecided" | "different";
  takeHeld(): string;
} {
  const tokens = ["{", '"input"', ":", '"'];
  let held: string[] = [];
  let token = 0;
  let character = 0;

  return {
    match(piece) {
      held.push(piece);
      for (let position = 0; position < piece.length; position += 1) {
        if (character === 0 && isWhiteSpace(piece.charCodeAt(position))) continue;
        const expected = tokens[token] ?? "";
        if (piece[position] !== expected[character]) return "different";
        character += 1;
        if (character < expected.length) continue;
        token += 1;
        character = 0;
        if (token < tokens.length) continue;
        held = [];
        return position + 1;
      }
      return "undecided";
    },
    takeHeld() {
      const text = held.join("");
      held = [];
      return text;
    },
  };
}

/** Decodes the inside of a JSON string. What JSON would refuse in it is kept as the model wrote it. */
function openStringDecoder(): { push(piece: string, from: number): string } {
  let escape = "";
  let closed = false;

  /** The text of an escape that ended with this character, "" while it goes on, null when it never was one. */
  function endEscape(character: string): string | null {
    if (escape === "\\") {
      if (character === "u") {
        escape = "\\u";
        return "";
      }
      escape = "";
      return simpleEscapes[character] ?? `\\${character}`;
    }
    if (!isHexadecimal(character)) return null;
    escape += character;
    if (escape.length < 6) return "";
    const unit = Number.parseInt(escape.slice(2), 16);
    escape = "";
    return String.fromCharCode(unit);
  }

  return {
    push(piece, from) {
      let out = "";
      let position = from;
      while (!closed && position < piece.length) {
        if (escape !== "") {
          const text = endEscape(piece.charAt(position));
          out += text ?? escape;
          // A character that breaks an escape off may be the closing quote or begin the next escape.
          if (text === null) escape = "";
          else position += 1;
          continue;
        }
        const end = findSpecial(piece, position);
        if (end > position) out += piece.slice(position, end);
        if (piece[end] === '"') closed = true;
        else if (end < piece.length) escape = "\\";
        position = end + 1;
      }
      return out;
    },
  };
}

/** The position of the next quote or backslash, or the length where there is none. */
function findSpecial(piece: string, from: number): number {
  for (let position = from; position < piece.length; position += 1) {
    const unit = piece.charCodeAt(position);
    if (unit === 0x22 || unit === 0x5c) return position;
  }
  return piece.length;
}

const simpleEscapes: Readonly<Record<string, string | undefined>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

function isHexadecimal(character: string): boolean {
  return /^[0-9a-fA-F]$/.test(character);
}

function isWhiteSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}
