/** Bytes with some changes of the kind that networks, proxies and attackers make; a function of `random`. */
export function mutateBytes(original: Uint8Array, random: () => number): Uint8Array<ArrayBuffer> {
  let bytes = new Uint8Array(original);
  const changes = 1 + Math.floor(random() * 4);
  for (let change = 0; change < changes; change += 1) bytes = changeOnce(bytes, random);
  return bytes;
}

/** What a parser of JSON, of HTTP or of an event stream may take for something else. */
const tokens = [
  "\0",
  "\r",
  "\n",
  "\r\n\r\n",
  "\uFEFF",
  "data:",
  "data: [DONE]\n\n",
  ": ping\n\n",
  "event: error\n",
  '"',
  "\\",
  "\\ud800",
  "{",
  "}",
  "[[[[[[[[",
  "]",
  ",",
  ":",
  "null",
  "1e999",
  "-0",
  "9007199254740993",
  '"__proto__":{},',
  "0\r\n\r\n",
  "\u{1F600}",
].map((text) => new TextEncoder().encode(text));

function changeOnce(bytes: Uint8Array, random: () => number): Uint8Array<ArrayBuffer> {
  const at = Math.floor(random() * (bytes.length + 1));
  const length = Math.min(bytes.length - at, Math.floor(random() ** 3 * 400));
  const before = bytes.subarray(0, at);
  const piece = bytes.subarray(at, at + length);
  const after = bytes.subarray(at + length);
  switch (Math.floor(random() * 7)) {
    case 0:
      return join(before, after);
    case 1:
      return join(before, piece, piece, after);
    case 2:
      return join(before);
    case 3:
      return join(before, tokens[Math.floor(random() * tokens.length)] ?? piece, piece, after);
    case 4:
      return join(
        before,
        Uint8Array.from({ length: 1 + Math.floor(random() * 8) }, () => random() * 256),
        after,
      );
    case 5:
      return join(after, before, piece);
    default: {
      const flipped = new Uint8Array(bytes);
      const current = flipped[at];
      if (current !== undefined) flipped[at] = current ^ (1 << Math.floor(random() * 8));
      return flipped;
    }
  }
}

function join(...pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(pieces));
}
