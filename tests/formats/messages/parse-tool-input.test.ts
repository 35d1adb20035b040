import { partialParse } from "@anthropic-ai/sdk/_vendor/partial-json-parser/parser.mjs";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseToolInput } from "../../../src/formats/messages/parse-tool-input.ts";

/** What the SDK accumulates from the same text; it throws on what is no JSON. */
function accumulated(text: string): unknown {
  try {
    return text === "" ? {} : partialParse(text);
  } catch {
    return {};
  }
}

const written = [
  '{"a": "x\\"y", "b": [1, 2.5e-3, true, null, {"c": "\\u00e9"}], "d": -0.5 }',
  ' { "a" : [ ] , "b" : { } , "c" : "\\\\" } ',
  '[1, {"a": false}]',
];

test.each(written)("%s cut anywhere is what the SDK makes of it", (text) => {
  for (let end = 0; end <= text.length; end += 1)
    expect(parseToolInput(text.slice(0, end)), text.slice(0, end)).toEqual(
      accumulated(text.slice(0, end)),
    );
});

test("any JSON object, cut anywhere, is what the SDK makes of it", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (value, cut) => {
      const text = JSON.stringify(value, null, cut % 3);
      const piece = text.slice(0, cut % (text.length + 1));
      expect(parseToolInput(piece)).toEqual(accumulated(piece));
      expect(parseToolInput(text)).toEqual(JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

test.each([
  "",
  "   ",
  "no json",
  '{"a" 1}',
  "{} {}",
  "{]",
  '{"a":1}}',
  "}",
  '{"a": nope',
  "\\",
  '"',
])("%j, which is no JSON, is nothing", (text) => {
  expect(parseToolInput(text)).toEqual({});
});

test.each(["[1]", '"x"', "null", "true"])("%s, which is no object, stays what it is", (text) => {
  expect(parseToolInput(text)).toEqual(JSON.parse(text));
});

test("nesting that no history could carry is nothing, at any depth, and is not confused with strings", () => {
  expect(parseToolInput("[".repeat(64) + "]".repeat(64))).not.toEqual({});
  for (const depth of [65, 1_000_000]) {
    expect(parseToolInput("[".repeat(depth) + "]".repeat(depth))).toEqual({});
    expect(parseToolInput('{"a":'.repeat(depth))).toEqual({});
  }
  expect(parseToolInput(`{"a":"${"[".repeat(100)}"}`)).toEqual({ a: "[".repeat(100) });
});

test("__proto__ in arguments is a field like any other", () => {
  const input = parseToolInput('{"__proto__":{"x":1},"a":');
  expect(JSON.stringify(input)).toBe('{"__proto__":{"x":1}}');
  expect(Object.getPrototypeOf(input)).toBe(Object.prototype);
});
