import * as fc from "fast-check";
import { expect, test } from "vitest";
import { JsonObjectScanner } from "../../../src/deployment/openai-compatible/json-object-scanner.ts";

function complete(pieces: readonly string[]): boolean {
  const scanner = new JsonObjectScanner();
  for (const piece of pieces) scanner.add(piece);
  return scanner.complete;
}

test("an object is complete with its last brace and not before", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
      fc.integer({ min: 0, max: 4 }),
      (value, indent) => {
        const json = JSON.stringify(value, null, indent);
        expect(complete([json])).toBe(true);
        expect(complete(json.split(""))).toBe(true);
        expect(complete([json, "\n  "])).toBe(true);
        for (let cut = 0; cut < json.length; cut += 1)
          expect(complete([json.slice(0, cut)])).toBe(false);
      },
    ),
    { numRuns: 30 },
  );
});

test.each([
  "",
  " ",
  "1",
  "null",
  '"{}"',
  "[]",
  "[{}]",
  "{}{}",
  "{} x",
  "x{}",
  '{"a":"}',
  '{"a":"\\"}',
])("%j is no whole object", (text) => {
  expect(complete([text])).toBe(false);
});
