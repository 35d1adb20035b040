/** Takes the chunks of a body apart (RFC 9112, 7.1), where the service has made them itself. */
export interface Unchunker {
  /** What is in the chunks, of bytes that come as they may. Throws for what is no chunk. */
  take(bytes: Uint8Array): readonly Uint8Array[];
  /** Whether the chunk that ends the body has come. */
  readonly ended: boolean;
}

/** Opens the reading of one body. No extensions, no trailers: the service has none. */
export function openUnchunker(): Unchunker {
  let line = "";
  /** Bytes of the open chunk that are still to come; null between chunks. */
  let missing: number | null = null;
  let ended = false;

  /** Reads up to the end of a line; null: it goes on. */
  function takeLine(text: string): { readonly whole: string; readonly characters: number } | null {
    const before = line.length;
    line += text;
    const end = line.indexOf("\r\n");
    if (end === -1) {
      if (line.length > 16) throw new Error(`no chunk begins like this: ${JSON.stringify(line)}`);
      return null;
    }
    const whole = line.slice(0, end);
    line = "";
    return { whole, characters: end + 2 - before };
  }

  function readSize(text: string): number {
    if (!/^[0-9a-f]+$/u.test(text))
      throw new Error(`no length of a chunk: ${JSON.stringify(text)}`);
    return Number.parseInt(text, 16);
  }

  return {
    get ended() {
      return ended && line === "" && missing === null;
    },
    take(bytes) {
      const data: Uint8Array[] = [];
      for (let at = 0; at < bytes.length;) {
        if (missing !== null && missing > 0) {
          const piece = bytes.subarray(at, at + missing);
          data.push(piece);
          missing -= piece.length;
          at += piece.length;
          continue;
        }
        // A line break, of a chunk that is over or of its head: a few bytes that may be cut anywhere.
        const found = takeLine(Buffer.from(bytes.subarray(at, at + 20)).toString("latin1"));
        if (found === null) break;
        at += found.characters;
        if (missing === 0) {
          if (found.whole !== "") throw new Error("a chunk is longer than it says");
          missing = null;
        } else {
          if (ended) throw new Error("a chunk after the last one");
          missing = readSize(found.whole);
          ended = missing === 0;
        }
      }
      return data;
    },
  };
}
