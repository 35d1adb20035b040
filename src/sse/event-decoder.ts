import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** Takes the bytes of an event stream as they come and calls back once for each event, synchronously. */
export interface EventDecoder {
  /** Throws a Failure `deployment_failed` when one event exceeds the bound; the decoder is of no use after. */
  add(bytes: Uint8Array): void;
  /** Comments that came so far. */
  readonly comments: number;
  /** The stream is over: an event without its blank line counts, as some engines leave that out. */
  end(): void;
}

/** `data` with its lines joined by a line feed; `event` is "" when the frame has no name. */
export type EventReceiver = (data: string, event: string) => void;

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const noBytes = new Uint8Array(0);

/** Opens a decoder for one stream. Its work is linear in the bytes, wherever they are cut. */
export function openEventDecoder(
  onEvent: EventReceiver,
  charactersMax: number = limits.upstreamFrameCharactersMax,
): EventDecoder {
  return new Decoder(onEvent, charactersMax);
}

class Decoder implements EventDecoder {
  readonly #onEvent: EventReceiver;
  readonly #charactersMax: number;
  /** Bytes of a character whose rest has not come yet. */
  #tail: Uint8Array = noBytes;
  #begun = false;
  #afterCarriageReturn = false;
  /** Pieces of the line whose end has not come yet: searched once, joined once. */
  #line: string[] = [];
  #data: string[] | null = null;
  #event = "";
  #held = 0;
  comments = 0;

  constructor(onEvent: EventReceiver, charactersMax: number) {
    this.#onEvent = onEvent;
    this.#charactersMax = charactersMax;
  }

  add(bytes: Uint8Array): void {
    const whole = this.#tail.length === 0 ? bytes : concatenate(this.#tail, bytes);
    const cut = whole.length - incompleteTail(whole);
    // Copied: the reader may use its buffer again.
    this.#tail = cut === whole.length ? noBytes : whole.slice(cut);
    if (cut > 0) this.#addText(utf8.decode(cut === whole.length ? whole : whole.subarray(0, cut)));
  }

  end(): void {
    if (this.#tail.length > 0) this.#addText(utf8.decode(this.#tail));
    this.#tail = noBytes;
    if (this.#line.length > 0) this.#takeLine("");
    this.#dispatch();
  }

  #addText(decoded: string): void {
    const text = this.#normalize(decoded);
    let from = 0;
    for (;;) {
      const end = text.indexOf("\n", from);
      if (end === -1) break;
      // The usual frame, whole in one read: `data: ...` and a blank line.
      if (
        this.#data === null &&
        this.#line.length === 0 &&
        this.#event === "" &&
        text.charCodeAt(end + 1) === lineFeed &&
        text.startsWith("data: ", from)
      ) {
        if (end - from >= this.#charactersMax) throw tooLarge();
        this.#onEvent(text.slice(from + 6, end), "");
        from = end + 2;
        continue;
      }
      this.#takeLine(text.slice(from, end));
      from = end + 1;
    }
    if (from < text.length) this.#holdPiece(text.slice(from));
  }

  /** Line ends become single line feeds, also those that were cut in two; a byte order mark goes. */
  #normalize(decoded: string): string {
    let text = decoded;
    if (!this.#begun) {
      this.#begun = true;
      if (text.charCodeAt(0) === byteOrderMark) text = text.slice(1);
    }
    if (this.#afterCarriageReturn && text !== "") {
      this.#afterCarriageReturn = false;
      if (text.charCodeAt(0) === lineFeed) text = text.slice(1);
    }
    if (!text.includes("\r")) return text;
    this.#afterCarriageReturn = text.endsWith("\r");
    return text.replaceAll(/\r\n?/gu, "\n");
  }

  #holdPiece(piece: string): void {
    this.#line.push(piece);
    this.#hold(piece.length + perPiece);
  }

  #hold(characters: number): void {
    this.#held += characters;
    if (this.#held > this.#charactersMax) throw tooLarge();
  }

  #takeLine(last: string): void {
    let line = last;
    if (this.#line.length > 0) {
      this.#held -= this.#line.length * perPiece - last.length;
      this.#line.push(last);
      line = this.#line.join("");
      this.#line = [];
      this.#held -= line.length;
    }
    if (line === "") return this.#dispatch();
    if (line.startsWith("data:")) {
      this.#hold(line.length + perPiece);
      const value = line.slice(line.charCodeAt(5) === space ? 6 : 5);
      if (this.#data === null) this.#data = [value];
      else this.#data.push(value);
      return;
    }
    if (line === "data") {
      this.#hold(perPiece);
      if (this.#data === null) this.#data = [""];
      else this.#data.push("");
      return;
    }
    if (line.startsWith("event:")) this.#event = line.slice(line.charCodeAt(6) === space ? 7 : 6);
    else if (line.charCodeAt(0) === colon) this.comments += 1;
    // Not used: `id` and `retry`.
  }

  #dispatch(): void {
    const data = this.#data;
    const event = this.#event;
    this.#data = null;
    this.#event = "";
    this.#held = 0;
    if (data !== null) this.#onEvent(data.length === 1 ? (data[0] ?? "") : data.join("\n"), event);
  }
}

/** What a piece of a line or a line of an event counts beside its characters: those without text are held too. */
const perPiece = 32;
const lineFeed = 10;
const space = 32;
const colon = 58;
const byteOrderMark = 0xfeff;

/** How many bytes at the end are the beginning of a character whose rest is still to come. */
function incompleteTail(bytes: Uint8Array): number {
  const { length } = bytes;
  for (let back = 1; back <= 3 && back <= length; back += 1) {
    const byte = bytes[length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? back : 0;
  }
  return 0;
}

function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

function tooLarge(): Failure {
  return new Failure("deployment_failed", "The deployment sent an event that is too large.");
}
