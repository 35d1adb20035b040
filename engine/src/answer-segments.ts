import { countBegun } from "./answer-text.ts";

/** A piece of what the model said outside a call. */
export interface SegmentPiece {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}

/** By what thinking and calls are known in a model's text. */
export interface SegmentMarkers {
  /** Any of these at the beginning of a text opens a thought. */
  readonly thoughtOpens: readonly string[];
  readonly thoughtCloses: readonly string[];
  /** null: no calls are looked for. */
  readonly call: string | null;
}

/** What one piece of text gave. `call`: what came after the marker of a call; null: none came. */
export interface SegmentScan {
  readonly pieces: readonly SegmentPiece[];
  readonly call: string | null;
}

/** How it begins, and whether the end of a thought is where a call begins. */
export interface SegmentStart {
  readonly thinking: boolean;
  readonly callAfterThought: boolean;
}

/** Blanks are held back up to this, as those before a marker are not shown. */
const blanksHeldMax = 64;

/** Divides a model's text; markers are never part of a piece, nor is what may become one. Without any, all comes at once. */
export class AnswerSegments {
  readonly #markers: SegmentMarkers;
  readonly #callAfterThought: boolean;
  #thinking: boolean;
  #held = "";
  /** Nothing but blanks so far in the part under way. */
  #blank = true;
  /** Whether blanks at the beginning of this part are shown: only in an answer that begins with text. */
  #keepBlanks: boolean;

  constructor(markers: SegmentMarkers, start: SegmentStart) {
    this.#markers = markers;
    this.#callAfterThought = start.callAfterThought;
    this.#thinking = start.thinking;
    this.#keepBlanks = !start.thinking;
  }

  get thinking(): boolean {
    return this.#thinking;
  }

  add(text: string): SegmentScan {
    const pieces: SegmentPiece[] = [];
    let rest = this.#held + text;
    this.#held = "";
    for (;;) {
      const opened = this.#openThought(rest);
      if (opened === "later") {
        this.#held = rest;
        return { pieces, call: null };
      }
      const found = findFirst(rest, this.#awaited());
      if (opened !== null) {
        rest = opened.rest;
      } else if (found === null) {
        this.#hold(rest, pieces);
        return { pieces, call: null };
      } else {
        this.#show(rest.slice(0, found.at).trimEnd(), pieces);
        rest = rest.slice(found.at + found.marker.length);
        if (!this.#thinking || this.#callAfterThought) return { pieces, call: rest };
      }
      this.#turn();
    }
  }

  /** What was held. `cut`: the allowance ended the answer, so that the beginning of a marker is not text. */
  flush(cut: boolean): readonly SegmentPiece[] {
    const pieces: SegmentPiece[] = [];
    const held = this.#held;
    this.#held = "";
    const opening = this.#openThought(held) === "later";
    const begun = opening ? held.length : countBegun(held, this.#awaited());
    const kept = cut && begun > 0 ? held.slice(0, held.length - begun).trimEnd() : held;
    this.#show(this.#thinking ? kept.trimEnd() : kept, pieces);
    return pieces;
  }

  #awaited(): readonly string[] {
    if (this.#thinking) return this.#markers.thoughtCloses;
    return this.#markers.call === null ? [] : [this.#markers.call];
  }

  /** The rest behind the marker that opens a thought; "later": the text may still become one. */
  #openThought(text: string): { readonly rest: string } | "later" | null {
    if (this.#thinking || !this.#blank) return null;
    const begun = text.trimStart();
    for (const marker of this.#markers.thoughtOpens) {
      if (begun.startsWith(marker)) return { rest: begun.slice(marker.length) };
    }
    if (begun === "") return null;
    return this.#markers.thoughtOpens.some((marker) => marker.startsWith(begun)) ? "later" : null;
  }

  #hold(text: string, pieces: SegmentPiece[]): void {
    const awaited = this.#awaited();
    const mayOpen = !this.#thinking && this.#blank && this.#markers.thoughtOpens.length > 0;
    const held = awaited.length > 0 || mayOpen ? countHeld(text, awaited) : 0;
    this.#show(text.slice(0, text.length - held), pieces);
    this.#held = text.slice(text.length - held);
  }

  #show(text: string, pieces: SegmentPiece[]): void {
    const shown = this.#blank && !this.#keepBlanks ? text.trimStart() : text;
    if (shown === "") return;
    if (shown.trim() !== "") this.#blank = false;
    pieces.push({ kind: this.#thinking ? "reasoning" : "text", text: shown });
  }

  #turn(): void {
    this.#thinking = !this.#thinking;
    this.#blank = true;
    this.#keepBlanks = false;
  }
}

function findFirst(
  text: string,
  markers: readonly string[],
): { at: number; marker: string } | null {
  let first: { at: number; marker: string } | null = null;
  for (const marker of markers) {
    const at = text.indexOf(marker);
    if (at !== -1 && (first === null || at < first.at)) first = { at, marker };
  }
  return first;
}

/** Characters at the end that may begin a marker, and the blanks before them. */
function countHeld(text: string, markers: readonly string[]): number {
  const end = text.length - countBegun(text, markers);
  let start = end;
  while (start > 0 && end - start < blanksHeldMax && text.charAt(start - 1).trim() === "") {
    start -= 1;
  }
  return text.length - start;
}
