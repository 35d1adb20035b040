import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import {
  decodeCustomToolInput,
  openCustomToolInputDecoder,
} from "../../src/formats/custom-tool-input.ts";
import { threadProcessorMs } from "../doubles/processor-clock.ts";

function decodePieces(pieces: readonly string[]): string {
  const decoder = openCustomToolInputDecoder();
  return pieces.map((piece) => decoder.push(piece)).join("") + decoder.finish();
}

/** Texts that come near the shape: its own characters, escapes and halves of surrogate pairs. */
const nearShape = fc
  .array(
    fc.constantFrom(
      '{"input":"',
      '{"input"',
      "{",
      "}",
      '"',
      "\\",
      "\\u",
      "\\ud83d",
      "\\ude00",
      "\ud83d",
      "\ude00",
      "\\u12",
      "\\n",
      "d",
      "0",
      " ",
      ":",
      "input",
      "é",
      "😀",
    ),
    { maxLength: 12 },
  )
  .map((words) => words.join(""));

const anyArguments = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "grapheme" }).map((input) => JSON.stringify({ input })),
  fc.string({ unit: "binary" }).map((input) => `{ "input" :\n${JSON.stringify(input)} }`),
  nearShape,
  nearShape.map((text) => `{"input":"${text}`),
);

describe("the decoder of custom tool input", () => {
  test("gives back every string that was written as the input", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (input) => {
        expect(decodeCustomToolInput(JSON.stringify({ input }))).toBe(input);
      }),
    );
  });

  test("depends on the whole text only, not on where it was cut", () => {
    fc.assert(
      fc.property(anyArguments, fc.array(fc.nat()), (text, cuts) => {
        const positions = cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b);
        const pieces = [0, ...positions].map((from, index) => text.slice(from, positions[index]));
        expect(pieces.join("")).toBe(text);
        expect(decodePieces(pieces)).toBe(decodeCustomToolInput(text));
        expect(decodePieces(text.split(""))).toBe(decodeCustomToolInput(text));
      }),
      { numRuns: 1000 },
    );
  });

  test("never gives out half a surrogate pair while the other half may come", () => {
    const decoder = openCustomToolInputDecoder();
    expect(decoder.push('{"input":"a\ud83d')).toBe("a");
    expect(decoder.push("\ude00\\ud83d")).toBe("😀");
    expect(decoder.push("\\ude")).toBe("");
    expect(decoder.push("00")).toBe("😀");
    expect(decoder.push("\ud83d")).toBe("");
    expect(decoder.finish()).toBe("\ud83d");
  });

  test("gives out text as it comes once the beginning has matched", () => {
    const decoder = openCustomToolInputDecoder();
    expect(decoder.push('{ "in')).toBe("");
    expect(decoder.push('put": "first')).toBe("first");
    expect(decoder.push(" line\\")).toBe(" line");
    expect(decoder.push('n\\"')).toBe('\n"');
    expect(decoder.push('"}')).toBe("");
    expect(decoder.finish()).toBe("");
  });

  test("lets go of what was held as soon as it cannot match any more", () => {
    const decoder = openCustomToolInputDecoder();
    expect(decoder.push('{"inp')).toBe("");
    expect(decoder.push("x")).toBe('{"inpx');
    expect(decoder.push('"y')).toBe('"y');
  });

  test.each([
    ["", ""],
    ["ls -la", "ls -la"],
    ["{", "{"],
    ['{"input"', '{"input"'],
    ['{"input":5}', '{"input":5}'],
    ['{"input":{"a":1}}', '{"input":{"a":1}}'],
    ['{"patch":"x"}', '{"patch":"x"}'],
    ['["input"]', '["input"]'],
    ['"{"input":"x"}', '"{"input":"x"}'],
    ['{"in put":"x"}', '{"in put":"x"}'],
    ["{}", "{}"],
  ])("takes %j as the input itself when it is not of the shape", (text, input) => {
    expect(decodeCustomToolInput(text)).toBe(input);
  });

  test.each([
    ['{"input":""}', ""],
    ['{"input":"', ""],
    ['{"input":"cut in the mid', "cut in the mid"],
    ['{"input":"cut in an escape\\', "cut in an escape"],
    ['{"input":"cut in an escape\\u00', "cut in an escape"],
    ['{"input":"first","input":"second"}', "first"],
    ['{"input":"done"} and more', "done"],
    ['{"input":"a raw\nline"}', "a raw\nline"],
    ['{"input":"\\d+\\.\\\\"}', "\\d+\\.\\"],
    ['{"input":"\\u12"}', "\\u12"],
    ['{"input":"\\u12\\n"}', "\\u12\n"],
    ['{"input":"\\/\\b\\f\\r\\t"}', "/\b\f\r\t"],
    [' \r\n\t{ "input" : "x" }', "x"],
  ])("reads %j", (text, input) => {
    expect(decodeCustomToolInput(text)).toBe(input);
  });

  test("works in time linear in the text, whatever the pieces", () => {
    const escapes = `{"input":"${"\\n".repeat(1_000_000)}"}`;
    const started = threadProcessorMs();
    expect(decodeCustomToolInput(escapes)).toHaveLength(1_000_000);
    expect(decodePieces(`{${" ".repeat(300_000)}x`.split(""))).toHaveLength(300_002);
    expect(threadProcessorMs() - started).toBeLessThan(5_000);
  });
});
