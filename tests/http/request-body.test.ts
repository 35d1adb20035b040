import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { areTiny, readRequestBody } from "../../src/http/request-body.ts";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { openRandom } from "../doubles/random.ts";

/** Something that reads a body, with a clock that stands still. */
function openReading(sizes: { readonly announced?: number; readonly keptBytesMax?: number } = {}) {
  const request = new IncomingMessage(new Socket());
  if (sizes.announced !== undefined) request.headers["content-length"] = String(sizes.announced);
  const timers = openManualTimers();
  const counted = { expected: 0, held: 0, released: 0 };
  const entry = {
    expect: (bytes: number) => void (counted.expected += bytes),
    hold: (bytes: number) => void (counted.held += bytes),
    release: () => void (counted.released += 1),
  };
  const keptBytesMax = sizes.keptBytesMax ?? limits.bodyBytesMax;
  const read = readRequestBody(request, new ServerResponse(request), {
    entry,
    keptBytesMax,
    timers,
  });
  read.catch(() => undefined);
  return {
    timers,
    counted,
    read,
    /** Each piece is read before the next one comes, as from a socket. */
    async push(...pieces: readonly Buffer[]): Promise<void> {
      for (const piece of pieces) {
        request.push(piece);
        await turn();
      }
    },
    end: () => void request.push(null),
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Reads what is given as the pieces of one body. */
async function readPieces(
  pieces: readonly Buffer[],
  announced?: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reading = openReading(announced === undefined ? {} : { announced });
  await reading.push(...pieces);
  reading.end();
  const { bytes, byteLength } = await reading.read;
  expect(bytes?.byteLength).toBe(byteLength);
  // Whatever became of it, nothing looks at it any more.
  expect(reading.timers.waiting).toBe(0);
  return bytes ?? new Uint8Array();
}

async function failureOf(reading: Promise<unknown>): Promise<readonly [string, string]> {
  const error: unknown = await reading.catch((thrown: unknown) => thrown);
  if (!(error instanceof Failure)) throw new Error("the body was not refused");
  return [error.code, error.message];
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
      const body = await readPieces(pieces, times % 2 === 0 ? whole.byteLength : undefined);
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

describe("a body that is slow", () => {
  it("gives its memory back with its refusal, not with a later collection", async () => {
    const reading = openReading({ announced: limits.bodyBytesMax });
    await reading.push(Buffer.from("{"));
    const { arrayBuffers } = process.memoryUsage();
    reading.timers.advance(12_500);
    expect(arrayBuffers - process.memoryUsage().arrayBuffers).toBeGreaterThanOrEqual(
      limits.bodyBytesMax,
    );
  });

  it("ends when nothing of it came for ten seconds", async () => {
    const reading = openReading();
    await reading.push(Buffer.from("{"));
    reading.timers.advance(7_500);
    await reading.push(Buffer.from(" "));
    reading.timers.advance(12_500);
    expect(await failureOf(reading.read)).toEqual([
      "request_timeout",
      "Nothing of the body arrived for 10 seconds. Send it without pauses.",
    ]);
    expect([reading.counted.released, reading.timers.waiting]).toEqual([1, 0]);
  });

  it("may come for a minute as long as something comes, and no longer", async () => {
    const reading = openReading();
    for (let second = 0; second < 60; second += 5) {
      reading.timers.advance(4_999);
      await reading.push(Buffer.from(" "));
    }
    expect(reading.timers.waiting).toBeGreaterThan(0);
    reading.timers.advance(12);
    const [code, message] = await failureOf(reading.read);
    expect([code, message]).toEqual([
      "request_timeout",
      "The body did not arrive within 60 seconds. Send it without pauses.",
    ]);
  });

  it("is waited for 10 s at least and 12.5 s at most when it stands still, wherever in its time", async () => {
    for (const afterMs of [0, 1, 2_499, 2_500, 9_999, 30_000]) {
      const reading = openReading();
      for (let at = 0; at < afterMs; at += 2_000) {
        reading.timers.advance(Math.min(2_000, afterMs - at));
        await reading.push(Buffer.from(" "));
      }
      reading.timers.advance(9_999);
      await turn();
      expect(reading.timers.waiting, String(afterMs)).toBeGreaterThan(0);
      reading.timers.advance(2_501);
      expect((await failureOf(reading.read))[1]).toMatch(/^Nothing of the body/);
    }
  });
});

describe("a body in tiny pieces", () => {
  it("is told so when 2,048 of them have less than 32 bytes each", async () => {
    const reading = openReading();
    const pieces = Array.from({ length: limits.tinyPiecesMax }, () => Buffer.from(" "));
    await reading.push(...pieces);
    await reading.push(Buffer.from(" "));
    const [code, message] = await failureOf(reading.read);
    expect([code, message]).toEqual([
      "invalid_request",
      "The body comes in pieces of fewer than 32 bytes. Send it in larger ones, best with `content-length`.",
    ]);
    expect(reading.counted.released).toBe(1);
  });

  it.each([
    [2_048, 2_048, false],
    [2_049, 2_049 * 32 - 1, true],
    [2_049, 2_049 * 32, false],
    [100_000, 4_000_000, false],
  ])("of %d pieces and %d bytes: %s", (pieces, bytes, tiny) => {
    expect(areTiny(pieces, bytes)).toBe(tiny);
  });
});

describe("the memory of a body", () => {
  it("counts as it is announced and as it comes, and is given back when it is refused", async () => {
    const reading = openReading({ announced: 100 });
    expect(reading.counted).toEqual({ expected: 100, held: 0, released: 0 });
    await reading.push(Buffer.from("12345"), Buffer.from("67"));
    expect(reading.counted).toEqual({ expected: 100, held: 7, released: 0 });
    await reading.push(Buffer.alloc(limits.bodyBytesMax));
    expect((await failureOf(reading.read))[0]).toBe("body_too_large");
    expect(reading.counted.released).toBe(1);
  });

  it("is none for one that is announced as longer than what is kept; its length is told", async () => {
    const reading = openReading({ announced: 11, keptBytesMax: 10 });
    await reading.push(Buffer.from("123456"), Buffer.from("78901"));
    reading.end();
    expect(await reading.read).toEqual({ byteLength: 11, bytes: null });
    expect(reading.counted).toMatchObject({ expected: 0, held: 0 });
  });

  it("is given back as soon as one in chunks is longer than what is kept", async () => {
    const reading = openReading({ keptBytesMax: 10 });
    await reading.push(Buffer.from("1234567890"));
    expect(reading.counted).toEqual({ expected: 0, held: 10, released: 0 });
    await reading.push(Buffer.from("1"), Buffer.from("2"));
    expect(reading.counted.held).toBe(10);
    expect(reading.counted.released).toBeGreaterThan(0);
    reading.end();
    expect(await reading.read).toEqual({ byteLength: 12, bytes: null });
  });
});
