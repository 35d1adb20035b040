import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import { openEventDecoder } from "../../src/sse/event-decoder.ts";
import { threadProcessorMs } from "../doubles/processor-clock.ts";

type Decoded = readonly (readonly [string, string])[];

function decode(reads: readonly Uint8Array[], charactersMax?: number): Decoded {
  const events: (readonly [string, string])[] = [];
  const decoder = openEventDecoder((data, event) => events.push([data, event]), charactersMax);
  for (const read of reads) {
    // A copy that is overwritten after the call: a socket's buffer may be used again.
    const copy = Uint8Array.from(read);
    decoder.add(copy);
    copy.fill(0x58);
  }
  decoder.end();
  return events;
}

function decodeText(text: string): Decoded {
  return decode([Buffer.from(text)]);
}

function cutAt(bytes: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] {
  const reads: Uint8Array[] = [];
  let from = 0;
  for (const cut of cuts.map((each) => each % (bytes.length + 1)).toSorted((a, b) => a - b)) {
    reads.push(bytes.subarray(from, cut));
    from = cut;
  }
  reads.push(bytes.subarray(from));
  return reads;
}

test.each([
  ["one frame", "data: a\n\n", [["a", ""]]],
  [
    "several frames in a read",
    "data: a\n\ndata: b\n\ndata: c\n\n",
    [
      ["a", ""],
      ["b", ""],
      ["c", ""],
    ],
  ],
  [
    "CRLF",
    "data: a\r\n\r\ndata: b\r\n\r\n",
    [
      ["a", ""],
      ["b", ""],
    ],
  ],
  [
    "CR alone",
    "data: a\r\rdata: b\r\r",
    [
      ["a", ""],
      ["b", ""],
    ],
  ],
  [
    "line ends of three kinds",
    "data: a\r\n\rdata: b\n\r\ndata: c\r\n\n",
    [
      ["a", ""],
      ["b", ""],
      ["c", ""],
    ],
  ],
  ["comments", ": ping\n\n:\n\ndata: a\n: in between\ndata: b\n\n", [["a\nb", ""]]],
  ["data in several lines", "data: a\ndata:b\ndata\ndata: c\n\n", [["a\nb\n\nc", ""]]],
  [
    "a name",
    "event: error\ndata: a\n\ndata: b\n\n",
    [
      ["a", "error"],
      ["b", ""],
    ],
  ],
  ["a name without data", "event: ping\n\ndata: a\n\n", [["a", ""]]],
  ["only one space is taken off", "data:  a\n\n", [[" a", ""]]],
  ["other fields", "id: 7\nretry: 5\nfoo\ndatax: z\ndata: a\n\n", [["a", ""]]],
  ["a byte order mark", "\uFEFFdata: a\n\n", [["a", ""]]],
  ["a byte order mark later on", "data: a\n\n\uFEFFdata: b\n\n", [["a", ""]]],
  [
    "no blank line at the end",
    "data: a\n\ndata: b\n",
    [
      ["a", ""],
      ["b", ""],
    ],
  ],
  [
    "no line end at the end",
    "data: a\n\ndata: [DONE]",
    [
      ["a", ""],
      ["[DONE]", ""],
    ],
  ],
  ["blank lines first", "\n\n\ndata: a\n\n\n\n", [["a", ""]]],
  ["nothing", "", []],
] as const)("decodes %s", (_name, text, expected) => {
  expect(decodeText(text)).toEqual(expected);
});

test("calls back in the read that completes the frame, not later", () => {
  const events: string[] = [];
  const decoder = openEventDecoder((data) => events.push(data));
  decoder.add(Buffer.from("data: a\n\nda"));
  expect(events).toEqual(["a"]);
  decoder.add(Buffer.from("ta: b\r"));
  expect(events).toEqual(["a"]);
  decoder.add(Buffer.from("\n\r"));
  expect(events).toEqual(["a", "b"]);
  decoder.add(Buffer.from("\ndata: c\n\n"));
  expect(events).toEqual(["a", "b", "c"]);
});

const line = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }).map((text) => `data: ${text}`),
  fc.constantFrom("", "", ":", ": ping", "data", "data:", "event: é", "id: 1", "data: 🦊€é"),
);
const stream = fc
  .array(fc.tuple(line, fc.constantFrom("\n", "\n", "\r\n", "\r")), { maxLength: 12 })
  .map((lines) => Buffer.from(lines.flat().join("")));
const brokenStream = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        0x0a,
        0x0d,
        0xe2,
        0x82,
        0xac,
        0xf0,
        0x9f,
        0xa6,
        0x8a,
        0xc3,
        0xff,
        0xef,
        0xbb,
        0xbf,
      ),
      fc.nat({ max: 255 }),
    ),
    { maxLength: 20 },
  )
  .map((bytes) =>
    Buffer.concat([Buffer.from("data: a"), Buffer.from(bytes), Buffer.from("\n\ndata: z\n\n")]),
  );

test("any cut of the bytes gives the same events, also of bytes that are no UTF-8", () => {
  fc.assert(
    fc.property(
      fc.oneof(stream, brokenStream),
      fc.array(fc.nat(), { maxLength: 30 }),
      (bytes, cuts) => {
        expect(decode(cutAt(bytes, cuts))).toEqual(decode([bytes]));
      },
    ),
    { numRuns: 500 },
  );
});

test("one byte a read gives the same events as one read", () => {
  const bytes = Buffer.from(
    ': hello\r\n\r\ndata: {"text":"añb€c🦊d"}\r\n\r\nevent: x\rdata: 1\rdata: 2\r\rdata: 3\n\n',
  );
  const each = [...bytes].map((byte) => Uint8Array.of(byte));
  expect(decode(each)).toEqual(decode([bytes]));
  expect(decode(each)).toEqual([
    ['{"text":"añb€c🦊d"}', ""],
    ["1\n2", "x"],
    ["3", ""],
  ]);
});

test("agrees with a plain reading of the whole text", () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 10 }), (bytes, cuts) => {
      expect(decode(cutAt(bytes, cuts)).map(([data]) => data)).toEqual(plainReading(bytes));
    }),
    { numRuns: 300 },
  );
});

function plainReading(bytes: Buffer): readonly string[] {
  const text = bytes.toString("utf8").replace(/^\uFEFF/u, "");
  const lines = text.split(/\r\n|\r|\n/u);
  const found: string[] = [];
  let data: string[] = [];
  for (const each of [...lines, ""]) {
    if (each === "" && data.length > 0) found.push(data.join("\n"));
    if (each === "") data = [];
    const value = /^data(?:: ?|$)(.*)$/su.exec(each)?.[1];
    if (value !== undefined) data.push(value);
  }
  return found;
}

test.each([
  ["in one read", 1 << 20],
  ["in small reads", 70],
])("refuses a frame above the bound %s", (_name, size) => {
  const refuse = (text: string) => () => {
    const bytes = Buffer.from(text);
    const reads: Buffer[] = [];
    for (let from = 0; from < bytes.length; from += size)
      reads.push(bytes.subarray(from, from + size));
    return decode(reads, 1_000);
  };
  expect(refuse(`data: ${"x".repeat(2_000)}\n\n`)).toThrow(Failure);
  expect(refuse(`data: ${"x".repeat(2_000)}`)).toThrow(Failure);
  expect(refuse(`: ${"x".repeat(2_000)}`)).toThrow(Failure);
  expect(refuse("data: xxxxx\n".repeat(30))).toThrow(Failure);
  expect(refuse("data\n".repeat(200))).toThrow("The deployment sent an event that is too large.");
  expect(refuse(`data: ${"x".repeat(500)}\n\n`.repeat(50))()).toHaveLength(50);
  expect(refuse(`: ${"x".repeat(500)}\n\n`.repeat(50))()).toHaveLength(0);
});

test("one frame of 8 MiB in reads of 1 KiB costs about as much as in large reads", () => {
  const bytes = Buffer.from(`data: ${"é".repeat(4 << 20)}\n\n`);
  const reads: Buffer[] = [];
  for (let from = 0; from < bytes.length; from += 1024)
    reads.push(bytes.subarray(from, from + 1024));
  const begun = threadProcessorMs();
  let characters = 0;
  const decoder = openEventDecoder((data) => (characters += data.length), 16 << 20);
  for (const read of reads) decoder.add(read);
  decoder.end();
  expect(characters).toBe(4 << 20);
  // Quadratic work would take minutes here.
  expect(threadProcessorMs() - begun).toBeLessThan(2_000);
});

test("a frame in very many reads is refused by their number, long before its characters", () => {
  const decoder = openEventDecoder(() => undefined, 100_000);
  let reads = 0;
  expect(() => {
    for (; reads < 100_000; reads += 1) decoder.add(Buffer.from("x"));
  }).toThrow(Failure);
  expect(reads).toBeLessThan(10_000);
});

test("lines that came in pieces count no longer when they are whole", () => {
  const decoder = openEventDecoder(() => undefined, 1_000);
  for (let line = 0; line < 100; line += 1)
    for (const piece of [": a", "b", "c\n"]) decoder.add(Buffer.from(piece));
  expect(decoder.comments).toBe(100);
});

test("counts the comments that are whole", () => {
  const decoder = openEventDecoder(() => undefined);
  const counts = [": a", "live\n", "\n:\n:\r\n", "id: 1\n\n", "data: :\n\n", ":"].map((text) => {
    decoder.add(Buffer.from(text));
    return decoder.comments;
  });
  expect(counts).toEqual([0, 1, 3, 3, 3, 3]);
});
