import { encodeNamedEvent } from "../../sse/server-sent-event.ts";

/** Numbers the frames of one stream: from 0, without gaps. */
export interface FrameEncoder {
  /** One frame. `fields` is the JSON text of its members, without `type` and `sequence_number`. */
  frame(type: string, fields: string): string;
  /**
   * Prepares frames that differ in one string: each then costs a `JSON.stringify` of that string and nothing more.
   * `locator` and `extra` are JSON text of members, with a trailing or leading comma.
   */
  openDelta(type: string, locator: string, extra: string): (delta: string) => string;
}

/** Opens the numbering of one stream. */
export function openFrameEncoder(): FrameEncoder {
  let sequence = 0;

  function takeNumber(): string {
    const number = String(sequence);
    sequence += 1;
    return number;
  }

  return {
    frame: (type, fields) =>
      encodeNamedEvent(type, `{"type":"${type}",${fields},"sequence_number":${takeNumber()}}`),
    openDelta(type, locator, extra) {
      const before = `event: ${type}\ndata: {"type":"${type}",${locator}"delta":`;
      const after = `${extra},"sequence_number":`;
      return (delta) => `${before}${JSON.stringify(delta)}${after}${takeNumber()}}\n\n`;
    },
  };
}
