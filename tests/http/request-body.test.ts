import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { readRequestBody } from "../../src/http/request-body.ts";
import { openRandom } from "../doubles/random.ts";

/** Reads what is given as the pieces of one body. */
async function readPieces(pieces: readonly Buffer[]): Promise<Uint8Array<ArrayBuffer>> {
  const request = new IncomingMessage(new Socket());
  const read = readRequestBody(request, new ServerResponse(request));
  for (const piece of pieces) {
    request.push(piece);
    // Each is read before the next one comes, as from a socket.
    await new Promise((resolve) => setImmediate(resolve));
  }
  request.push(null);
  return read;
}

/** Bytes in memory of their own, as Node makes them for what it reads. */
function ownPiece(bytes: Uint8Array): Buffer {
  return Buffer.from(Uint8Array.from(bytes).buffer);
}

describe("the bytes of a body", () => {
  it("are those of its pieces, however it is cut, in memory that can go to a thread", async () => {
    const random = openRandom(4_711);
    const whole = Buffer.from(Array.from({ length: 200_000 }, () => Math.floor(random() * 256)));
    for (let times = 0; times < 20; times += 1) {
      const pieces: Buffer[] = [];
      for (let from = 0; from < whole.byteLength;) {
        const to = from + 1 + Math.floor(random() ** 3 * 65_536);
        pieces.push(ownPiece(whole.subarray(from, to)));
        from = to;
      }
      const body = await readPieces(pieces);
      expect(whole.equals(body)).toBe(true);
      expect(body.buffer.byteLength).toBe(whole.byteLength);
      structuredClone(body, { transfer: [body.buffer] });
      expect(body.byteLength).toBe(0);
    }
  });

  it("are kept once: what they came in is freed at once", async () => {
    const pieces = [ownPiece(Buffer.alloc(60_000, "a")), ownPiece(Buffer.alloc(10, "b"))];
    const body = await readPieces(pieces);
    expect(body.byteLength).toBe(60_010);
    expect(pieces.map((piece) => piece.byteLength)).toEqual([0, 0]);
  });

  it("are copied from a pool, whose other bytes stay", async () => {
    const pool = new ArrayBuffer(100);
    const neighbour = Buffer.from(pool, 50, 50).fill("n");
    const body = await readPieces([Buffer.from(pool, 0, 50).fill("p")]);
    expect(Buffer.from(body).toString()).toBe("p".repeat(50));
    expect(neighbour.toString()).toBe("n".repeat(50));
  });

  it("are none where nothing came", async () => {
    expect((await readPieces([])).byteLength).toBe(0);
  });
});
