import { expect, it } from "vitest";
import { openUnchunker } from "./unchunk.ts";

const body = "5\r\nHello\r\n2\r\n\u00e9\r\n1a\r\nabcdefghijklmnopqrstuvwx\r\n\r\n0\r\n\r\n";
const bytes = Buffer.from(body);

it("finds what is in the chunks, however they are cut", () => {
  for (let length = 1; length <= bytes.length; length += 1) {
    const unchunker = openUnchunker();
    const found: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += length) {
      expect(unchunker.ended).toBe(false);
      found.push(...unchunker.take(bytes.subarray(at, at + length)));
    }
    expect(Buffer.concat(found).toString()).toBe("Hello\u00e9abcdefghijklmnopqrstuvwx\r\n");
    expect(unchunker.ended).toBe(true);
  }
});

it.each([
  ["4\r\nHello\r\n", "a chunk is longer"],
  ["6\r\nHello\r\n0\r\n\r\n", "a chunk is longer"],
  ["x\r\nHello\r\n", "no length of a chunk"],
  ["event: ping\ndata: {}\n\n", "no chunk begins"],
  ["0\r\n\r\n0\r\n\r\n", "a chunk after the last one"],
])("refuses %j", (text, problem) => {
  expect(() => openUnchunker().take(Buffer.from(text))).toThrow(problem);
});
