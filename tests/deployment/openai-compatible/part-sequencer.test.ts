import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/conversation/generation-event.ts";
import { PartSequencer } from "../../../src/deployment/openai-compatible/part-sequencer.ts";
import { limits } from "../../../src/limits.ts";

/** Index, id, name and arguments of one piece of a call; a text alone is text of the answer; null ends a chunk. */
type Piece = readonly [number | null, string, string, string] | string | null;

function open(): PartSequencer {
  let ids = 0;
  return new PartSequencer((prefix) => `${prefix}${(ids += 1)}`);
}

function add(sequencer: PartSequencer, piece: Piece): void {
  if (piece === null) sequencer.endChunk();
  else if (typeof piece === "string") sequencer.add("text", piece);
  else {
    const [index, id, name, written] = piece;
    sequencer.addCall({ index, id, name, arguments: written });
  }
}

/** The calls and texts of an answer as `id name arguments`, after its end. */
function read(pieces: readonly Piece[]): string[] {
  const sequencer = open();
  for (const piece of pieces) add(sequencer, piece);
  sequencer.end();
  return partsOf(sequencer.take());
}

function partsOf(events: readonly GenerationEvent[]): string[] {
  const parts: string[] = [];
  for (const event of events) {
    if (event.type === "tool-call-start") parts.push(`${event.id} ${event.name} `);
    if (event.type === "text-start") parts.push("");
    if (event.type === "tool-call-delta") parts.push(`${parts.pop() ?? ""}${event.arguments}`);
    if (event.type === "text-delta") parts.push(`${parts.pop() ?? ""}${event.text}`);
  }
  return parts;
}

const one = '{"x":1}';
const two = '{"x":2}';

describe("calls under one index", () => {
  test.each<[string, readonly Piece[], readonly string[]]>([
    [
      "each with a head and then its arguments",
      [
        [0, "a", "get", ""],
        null,
        [0, "", "", one],
        null,
        [0, "b", "get", ""],
        null,
        [0, "", "", two],
        null,
      ],
      [`a get ${one}`, `b get ${two}`],
    ],
    [
      "heads and arguments in one chunk",
      [[0, "a", "get", ""], [0, "", "", one], [0, "b", "get", ""], [0, "", "", two], null],
      [`a get ${one}`, `b get ${two}`],
    ],
    [
      "the first without arguments",
      [[0, "a", "now", ""], null, [0, "b", "get", ""], null, [0, "", "", two], null],
      ["a now ", `b get ${two}`],
    ],
    [
      "the last without arguments",
      [[0, "a", "get", one], null, [0, "b", "now", ""], null],
      [`a get ${one}`, "b now "],
    ],
    [
      "the last of the same name and without arguments",
      [[0, "a", "get", one], null, [0, "b", "get", ""], null],
      [`a get ${one}`, "b get "],
    ],
    [
      "the last of the same name and without arguments, before text of its chunk",
      [[0, "a", "get", one], null, [0, "b", "get", ""], "text", null],
      [`a get ${one}`, "b get ", "text"],
    ],
    [
      "the last without arguments, the first with an id that is replaced and repeated",
      [[0, "a\nb", "get", ""], [0, "a\nb", "", one], null, [0, "b", "get", ""], null],
      [`call_1 get ${one}`, "b get "],
    ],
    [
      "whole, with ids",
      [[0, "a", "get", one], null, [0, "b", "get", two], null],
      [`a get ${one}`, `b get ${two}`],
    ],
    [
      "whole, without ids",
      [[0, "", "get", one], null, [0, "", "get", two], null],
      [`call_1 get ${one}`, `call_2 get ${two}`],
    ],
    [
      "without ids, the first without arguments",
      [[0, "", "now", ""], null, [0, "", "get", ""], null, [0, "", "", two], null],
      ["call_1 now ", `call_2 get ${two}`],
    ],
    [
      "the second told by its id before its name",
      [[0, "a", "get", one], null, [0, "b", "", two], null, [0, "b", "put", ""], null],
      [`a get ${one}`, `b put ${two}`],
    ],
    [
      "the second begun by another name while the first is not whole",
      [[0, "a", "get", '{"x"'], null, [0, "b", "put", two], null],
      ['a get {"x"', `b put ${two}`],
    ],
    [
      "each with blanks behind it",
      [[0, "a", "get", one], [0, "", "", " \n"], [0, "b", "get", two], [0, "", "", "\n"], null],
      [`a get ${one}`, `b get ${two}`],
    ],
  ])("%s are calls of their own", (_name, pieces, parts) => {
    expect(read(pieces)).toEqual(parts);
  });
});

describe("calls without an index", () => {
  test.each<[string, readonly Piece[], readonly string[]]>([
    [
      "of one name, told apart by their ids",
      [
        [null, "a", "get", '{"x"'],
        [null, "b", "get", two],
        [null, "a", "", ":1}"],
      ],
      [`a get ${one}`, `b get ${two}`],
    ],
    [
      "of one name and without ids, the last without arguments",
      [[null, "", "get", one], null, [null, "", "get", ""], null],
      [`call_1 get ${one}`, "call_2 get "],
    ],
  ])("%s are calls of their own", (_name, pieces, parts) => {
    expect(read(pieces)).toEqual(parts);
  });

  test("whose later pieces have ids that nothing had before, and no name, go on", () => {
    expect(
      read([
        [null, "a", "get", '{"x"'],
        [null, "b", "", ":1}"],
      ]),
    ).toEqual([`a get ${one}`]);
  });
});

test("a call that waits keeps its first name", () => {
  expect(
    read([
      [0, "a", "f", "{"],
      [1, "b", "get", '{"x"'],
      [1, "b", "put", ":1}"],
      [0, "", "", "}"],
    ]),
  ).toEqual(["a f {}", `b get ${one}`]);
});

test("of two calls with one id the second gets one of ours", () => {
  expect(
    read([
      [0, "a", "f", one],
      [1, "a", "g", two],
    ]),
  ).toEqual([`a f ${one}`, `call_1 g ${two}`]);
});

describe("one call", () => {
  test.each<[string, readonly Piece[]]>([
    ["with its id in every piece", [[0, "a", "get", '{"x"'], [0, "a", "", ":1}"], null]],
    ["with its head echoed at the end", [[0, "a", "get", one], null, [0, "a", "get", ""], null]],
    ["with its head echoed before", [[0, "a", "get", ""], null, [0, "a", "get", one], null]],
    ["with its name echoed, without id", [[0, "a", "get", one], null, [0, "", "get", ""], null]],
    [
      "with another id in every piece",
      [
        [0, "a", "get", '{"x"'],
        null,
        [0, "b", "get", ":1"],
        null,
        [0, "c", "get", "}"],
        null,
        [0, "d", "get", ""],
        null,
      ],
    ],
    [
      "with another id in every piece, the first of them empty",
      [[0, "a", "get", ""], null, [0, "b", "get", '{"x":'], null, [0, "c", "get", "1}"], null],
    ],
    ["whole, with another id beside the finish", [[0, "a", "get", one], null, [0, "b", "get", ""]]],
    ["with blanks behind it", [[0, "a", "get", one], [0, "", "", "\n"], null]],
    ["with a head that brings nothing before it", [[0, "", "", ""], [0, "a", "get", one], null]],
    ["with another name in its last piece", [[0, "a", "get", '{"x"'], [0, "", "put", ":1}"], null]],
    ["whose id comes late", [[0, "", "get", ""], [0, "a", "", one], null]],
  ])("%s is one call", (name, pieces) => {
    expect(read(pieces)).toEqual([`${name.includes("late") ? "call_1" : "a"} get ${one}`]);
  });

  test("whose end came is not opened again by blanks", () => {
    expect(
      read([[0, "a", "get", one], "text", [0, "", "", " \n"], [0, "a", "", ""], null]),
    ).toEqual([`a get ${one}`, "text"]);
  });
});

describe("what is no answer", () => {
  test.each<[string, readonly Piece[], RegExp]>([
    [
      "text behind a whole object",
      [
        [0, "a", "get", one],
        [0, "", "", two],
      ],
      /complete/u,
    ],
    [
      "the same call written again",
      [[0, "a", "get", one], null, [0, "a", "get", one]],
      /complete/u,
    ],
    [
      "more for a call that has ended",
      [[0, "a", "get", one], "text", [0, "", "", "x"]],
      /complete/u,
    ],
    ["arguments of no call", [[null, "", "", one]], /no tool call/u],
    ["a call without a name", [[0, "a", "", one]], /without a name/u],
    [
      "a name beyond all names",
      [[0, "a", "n".repeat(limits.upstreamCallNameCharactersMax + 1), ""]],
      /name/u,
    ],
    [
      "a name beyond all names that comes late",
      [
        [0, "a", "", ""],
        [0, "", "n".repeat(limits.upstreamCallNameCharactersMax + 1), ""],
      ],
      /name/u,
    ],
  ])("%s ends the answer", (_name, pieces, words) => {
    expect(() => read(pieces)).toThrow(words);
  });
});

test.each([
  ["too long", "i".repeat(limits.upstreamCallIdCharactersMax + 1)],
  ["with a line feed", "a\nb"],
  ["with a delete character", "a\u007f"],
])("an id that is %s is replaced, and the call known by it all the same", (_name, id) => {
  expect(
    read([
      [null, id, "get", '{"x"'],
      [null, id, "", ":1}"],
    ]),
  ).toEqual([`call_1 get ${one}`]);
  expect(read([[null, "functions.get:0", "get", one]])).toEqual([`functions.get:0 get ${one}`]);
});

test("calls with ids that were replaced are told apart by them", () => {
  expect(
    read([
      [null, "a\nb", "f", "{"],
      [null, "c\nd", "g", "{"],
      [null, "a\nb", "", "}"],
      [null, "c\nd", "", "}"],
    ]),
  ).toEqual(["call_1 f {}", "call_2 g {}"]);
});

test("what comes when all parts have ended begins one of its own", () => {
  const sequencer = open();
  add(sequencer, "one");
  sequencer.end();
  add(sequencer, "two");
  sequencer.end();
  expect(partsOf(sequencer.take())).toEqual(["one", "two"]);
});

describe("what can be passed on is, before the answer ends:", () => {
  const types = (sequencer: PartSequencer): readonly string[] =>
    sequencer.take().map((event) => event.type);

  test("a call with the name that came late", () => {
    const sequencer = open();
    add(sequencer, [0, "a", "", ""]);
    expect(types(sequencer)).toEqual([]);
    add(sequencer, [0, "", "get", ""]);
    expect(types(sequencer)).toEqual(["tool-call-start"]);
  });

  test("a call whose turn has come, and not one with a late name before its turn", () => {
    const sequencer = open();
    add(sequencer, [0, "a", "f", "{"]);
    add(sequencer, [1, "b", "", "{"]);
    add(sequencer, [1, "", "g", "}"]);
    expect(types(sequencer)).toEqual(["tool-call-start", "tool-call-delta"]);
    add(sequencer, [0, "", "", "}"]);
    expect(types(sequencer)).toEqual([
      "tool-call-delta",
      "tool-call-end",
      "tool-call-start",
      "tool-call-delta",
    ]);
  });
});

test("heads of calls are pieces as well, and have no characters", () => {
  const sequencer = open();
  add(sequencer, [0, "a", "f", ""]);
  expect([sequencer.pieces, sequencer.characters]).toEqual([1, 0]);
  add(sequencer, [0, "", "", "{}"]);
  add(sequencer, "text");
  expect([sequencer.pieces, sequencer.characters]).toEqual([3, 6]);
});

describe("bounds", () => {
  const { upstreamCallIdCharactersMax, upstreamCallNameCharactersMax, upstreamPartsMax } = limits;

  test("a name and an id may be as long as that", () => {
    const name = "n".repeat(upstreamCallNameCharactersMax);
    const id = "i".repeat(upstreamCallIdCharactersMax);
    expect(read([[0, id, name, "{}"]])).toEqual([`${id} ${name} {}`]);
  });

  test("an answer has so many parts and no more, whatever is in them", () => {
    const calls = Array.from(
      { length: upstreamPartsMax },
      (_, index) => [index, `c${index}`, "f", ""] as const,
    );
    expect(read(calls)).toHaveLength(upstreamPartsMax);
    expect(() => read([...calls, [upstreamPartsMax, "more", "f", ""]])).toThrow(/parts/u);
    const sequencer = open();
    expect(() => {
      for (let index = 0; index <= upstreamPartsMax; index += 1)
        sequencer.add(index % 2 === 0 ? "text" : "reasoning", "x");
    }).toThrow(/parts/u);
  });

  test("what waits is counted, the pieces too, and counted off when it no longer waits", () => {
    const half = "x".repeat(limits.upstreamHeldCharactersMax / 2);
    const sequencer = open();
    for (let round = 0; round < 5; round += 1) {
      add(sequencer, [2 * round, `a${round}`, "f", "{"]);
      add(sequencer, half);
      add(sequencer, [2 * round, "", "", "}"]);
    }
    add(sequencer, [99, "last", "f", "{"]);
    add(sequencer, half);
    expect(() => add(sequencer, half)).toThrow(/too much/u);

    const small = open();
    add(small, [0, "a", "f", "{"]);
    let pieces = 0;
    expect(() => {
      for (; pieces < limits.upstreamHeldCharactersMax; pieces += 1) add(small, "x");
    }).toThrow(/too much/u);
    expect(pieces).toBeLessThan(limits.upstreamHeldCharactersMax / 16);
  });

  test("a part that waits counts without text as well", () => {
    const sequencer = open();
    add(sequencer, [0, "a", "f", "{"]);
    add(sequencer, "x".repeat(limits.upstreamHeldCharactersMax - 2 * limits.upstreamHeldPerPiece));
    expect(() => add(sequencer, [1, "b", "f", ""])).toThrow(/too much/u);
  });

  test("what has waited comes as one piece, and a read brings no more pieces than the bound and its parts", () => {
    const sequencer = open();
    add(sequencer, [0, "a", "f", "{"]);
    for (let piece = 0; piece < 1_000; piece += 1) add(sequencer, "x");
    add(sequencer, [0, "", "", "}"]);
    sequencer.end();
    expect(sequencer.take().map((event) => event.type)).toEqual([
      "tool-call-start",
      "tool-call-delta",
      "tool-call-delta",
      "tool-call-end",
      "text-start",
      "text-delta",
      "text-end",
    ]);
    const many = open();
    const pieces = Array.from({ length: 3 * limits.upstreamEventsAReadMax }, (_, index) =>
      String(10 + (index % 90)),
    );
    for (const piece of pieces) add(many, piece);
    many.add("reasoning", "why");
    const events = many.take();
    const tail = events.splice(-3).map((event) => event.type);
    expect(tail).toEqual(["text-end", "reasoning-start", "reasoning-delta"]);
    expect(events.length).toBeLessThanOrEqual(limits.upstreamEventsAReadMax + 1);
    expect(partsOf(events)).toEqual([pieces.join("")]);
    expect(many.pieces).toBe(3 * limits.upstreamEventsAReadMax + 1);
    expect(many.characters).toBe(6 * limits.upstreamEventsAReadMax + "why".length);
  });
});
