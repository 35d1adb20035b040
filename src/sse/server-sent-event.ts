/** One frame with an event name, as text. `data` is JSON text without line breaks. */
export function encodeNamedEvent(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}

/** One frame of data alone, as text. */
export function encodeData(data: string): string {
  return `data: ${data}\n\n`;
}

/** The keepalive comment of all formats: it carries no text and clients ignore it. */
export const pingComment = ": ping\n\n";
