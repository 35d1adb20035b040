/** One frame of an event stream: its event name, if it has one, and its data. */
export interface Frame {
  readonly event: string | null;
  readonly data: string;
}

/** What an event stream says: frames and comments in order. */
export type Line =
  | { readonly kind: "frame"; readonly frame: Frame }
  | { readonly kind: "comment"; readonly text: string };

/**
 * Reads the text of an event stream, more strictly than a browser would: every frame ends with a blank line, has at most
 * one `event:` before exactly one `data:`, and nothing else.
 */
export function readFrames(text: string): readonly Line[] {
  if (text === "") return [];
  if (!text.endsWith("\n\n")) throw new Error("the stream ends in the middle of a frame");
  if (text.includes("\r")) throw new Error("a carriage return outside of JSON");
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((block) => {
      const lines = block.split("\n");
      const first = lines[0] ?? "";
      if (first.startsWith(":")) {
        if (lines.length !== 1) throw new Error(`a comment and more in one frame: ${block}`);
        return { kind: "comment", text: first.slice(1).trimStart() };
      }
      const event = first.startsWith("event: ") ? first.slice(7) : null;
      const data = lines[event === null ? 0 : 1] ?? "";
      if (!data.startsWith("data: ") || lines.length !== (event === null ? 1 : 2)) {
        throw new Error(`a frame of an unknown shape: ${block}`);
      }
      return { kind: "frame", frame: { event, data: data.slice(6) } };
    });
}

/** The frames alone. */
export function framesOf(lines: readonly Line[]): readonly Frame[] {
  return lines.flatMap((line) => (line.kind === "frame" ? [line.frame] : []));
}
