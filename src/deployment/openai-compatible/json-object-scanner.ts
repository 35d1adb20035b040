/** Follows JSON text that comes in pieces and says whether it is one whole object so far. Work is linear in the text. */
export class JsonObjectScanner {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #state: "before" | "inside" | "complete" | "other" = "before";

  /** Whether the text so far is an object that has been closed. */
  get complete(): boolean {
    return this.#state === "complete";
  }

  /** Whether anything but blanks has come. */
  get begun(): boolean {
    return this.#state !== "before";
  }

  add(text: string): void {
    for (let index = 0; index < text.length; index += 1) {
      if (this.#state === "inside") this.#inside(text.charCodeAt(index));
      else if (!isSpace(text.charCodeAt(index))) this.#outside(text.charCodeAt(index));
    }
  }

  #outside(code: number): void {
    // Anything beside one object is no object; such a call is complete only when the answer is.
    this.#state = this.#state === "before" && code === openBrace ? "inside" : "other";
    if (this.#state === "inside") this.#depth = 1;
  }

  #inside(code: number): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (code === backslash) this.#escaped = true;
      else if (code === quote) this.#inString = false;
      return;
    }
    if (code === quote) this.#inString = true;
    else if (code === openBrace || code === openBracket) this.#depth += 1;
    else if (code === closeBrace || code === closeBracket) {
      this.#depth -= 1;
      if (this.#depth === 0) this.#state = "complete";
    }
  }
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
