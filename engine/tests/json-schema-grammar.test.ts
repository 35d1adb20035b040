import * as fc from "fast-check";
import { getLlama, LlamaLogLevel, type Llama } from "node-llama-cpp";
import { beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../src/conversation.ts";
import {
  buildJsonOrMarkerGrammar,
  buildNamesGrammar,
  escapeUnwritable,
} from "../src/grammar-rules.ts";
import { buildArgumentsGrammar } from "../src/json-schema-grammar.ts";
import { makeParametersCases } from "./schema-arbitrary.ts";

let llama: Llama;

beforeAll(async () => {
  llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    logLevel: LlamaLogLevel.disabled,
  });
}, 30_000);

/** Asks llama.cpp's own matcher. */
async function openMatcher(grammar: string): Promise<(text: string) => boolean> {
  const parsed = await llama.createGrammar({ grammar });
  // Its types leave this method out.
  const test = Reflect.get(parsed, "_testText") as (text: string) => boolean;
  return (text) => Reflect.apply(test, parsed, [text]);
}

async function matcherOf(schema: JsonObject | null): Promise<(text: string) => boolean> {
  const built = buildArgumentsGrammar(schema);
  expect(built.relaxed).toBeNull();
  return openMatcher(built.grammar);
}

const node = {
  type: "object",
  properties: {
    value: { type: "integer" },
    next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
  },
  required: ["value", "next"],
};

const cases: readonly (readonly [
  string,
  JsonObject | null,
  readonly string[],
  readonly string[],
])[] = [
  [
    "any object without a schema",
    null,
    ["{}", '{"a": [1, {}], "b": -2.5e-7}'],
    ["5", "[]", '{"a":1,}'],
  ],
  [
    "required and optional properties in their order",
    {
      type: "object",
      properties: {
        a: { type: "string" },
        b: { type: "integer" },
        c: { type: ["boolean", "null"] },
      },
      required: ["b"],
    },
    ['{"b":1}', '{"a":"x","b":-3,"c":null}', '{ "b": 2, "c": true }'],
    [
      "{}",
      '{"a":"x"}',
      '{"b":1.5}',
      '{"b":1,"d":2}',
      '{,"b":1}',
      '{"b":1,}',
      '{"b":"1"}',
      '{"b":01}',
    ],
  ],
  [
    "strings with every escape, and no half of a surrogate pair",
    { type: "object", properties: { a: { type: "string" } } },
    [String.raw`{"a":"\u00e9\ud83d\ude00é\n\"日"}`],
    [String.raw`{"a":"\ud83d"}`, String.raw`{"a":"\x"}`, '{"a":"\n"}'],
  ],
  [
    "enum and const, by the type beside them",
    {
      type: "object",
      properties: {
        e: { enum: ["x", "xy", 'z"\\', 1, null, { q: [1] }] },
        t: { type: "string", enum: ["a", 1] },
        c: { const: "k" },
      },
    },
    [
      '{"e":"xy"}',
      '{"e":"x"}',
      '{"e":{"q":[1]}}',
      '{"e":null,"t":"a","c":"k"}',
      String.raw`{"e":"z\"\\"}`,
    ],
    ['{"e":"xyz"}', '{"t":1}', '{"c":"kk"}', '{"e":2}'],
  ],
  [
    "other properties, whose names are not those of the schema",
    {
      type: "object",
      properties: { ab: { type: "string" }, a: { type: "boolean" } },
      additionalProperties: { type: "integer" },
    },
    ['{"ab":"x","abc":1,"b":2}', '{"":1}', String.raw`{"\"":1}`, '{"a":true,"aa":1}'],
    ['{"ab":1}', '{"abc":"x"}', String.raw`{"\u0061b":5}`, '{"a":true,"a":1}'],
  ],
  [
    "counted and leading items",
    {
      type: "object",
      properties: {
        l: { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 },
        t: { type: "array", prefixItems: [{ type: "string" }, { type: "boolean" }], items: false },
        u: {
          type: "array",
          prefixItems: [{ type: "string" }],
          items: { type: "null" },
          minItems: 2,
        },
        n: { type: "array", maxItems: 0 },
      },
    },
    [
      '{"l":[1]}',
      '{"l":[1,2, 3]}',
      '{"t":[]}',
      '{"t":["a",true]}',
      '{"u":["a",null,null]}',
      '{"n":[]}',
    ],
    [
      '{"l":[]}',
      '{"l":[1,2,3,4]}',
      '{"t":["a",true,1]}',
      '{"u":["a"]}',
      '{"t":[true]}',
      '{"n":[1]}',
    ],
  ],
  [
    "references that come back to themselves",
    { $ref: "#/$defs/node", $defs: { node } },
    ['{"value":1,"next":null}', '{"value":1,"next":{"value":2,"next":null}}'],
    ['{"value":1}', '{"value":1,"next":{"value":2}}', "null"],
  ],
  [
    "what anyOf and allOf add to the schema around them",
    {
      type: "object",
      properties: {
        x: {
          type: "object",
          properties: { k: { type: "string" }, m: { type: "integer" } },
          anyOf: [{ required: ["k"] }, { required: ["m"] }],
        },
        y: {
          allOf: [{ type: "object", properties: { p: { type: "integer" } } }, { required: ["p"] }],
        },
      },
    },
    ['{"x":{"k":"a"}}', '{"x":{"m":1}}', '{"x":{"k":"a","m":1}}', '{"y":{"p":1}}'],
    ['{"x":{}}', '{"y":{}}', '{"y":{"p":"1"}}'],
  ],
  [
    "nothing of keywords outside the subset",
    {
      type: "object",
      properties: {
        s: { type: "string", minLength: 3, pattern: "^a", format: "email" },
        i: { type: "integer", minimum: 5, multipleOf: 7 },
        u: { type: "array", uniqueItems: true, contains: { const: 1 } },
        w: { type: "mystery" },
        r: { $ref: "https://example.com/elsewhere" },
        l: { $ref: "#/properties/l" },
      },
      not: { required: ["s"] },
      if: { required: ["i"] },
      else: false,
    },
    ['{"s":"b","i":1,"u":[2,2],"w":[{}],"r":1,"l":null}'],
    ['{"s":1}', '{"u":{}}'],
  ],
];

describe("a schema made to cost", () => {
  const many = (name: string) => Array.from({ length: 200_000 }, () => name);
  const uses = (schema: JsonObject) =>
    Object.fromEntries(Array.from({ length: 2_500 }, (_, at) => [`p${String(at)}`, schema]));

  it("costs no product of the lengths of its lists of types", () => {
    const both = { allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/b" }] };
    const built = buildArgumentsGrammar({
      type: "object",
      properties: Object.fromEntries(Object.entries(uses(both)).slice(0, 10)),
      $defs: { a: { type: many("a") }, b: { type: many("b") } },
    });
    expect(built.relaxed).toMatch(/too large/);
  });

  it("has no reference of 200 kB followed", () => {
    const name = "n".repeat(200_000);
    const built = buildArgumentsGrammar({
      type: "object",
      properties: Object.fromEntries(
        Object.entries(uses({ $ref: `#/$defs/${name}` })).slice(0, 200),
      ),
      required: ["p0"],
      $defs: { [name]: { const: "followed" } },
    });
    expect(built.grammar).not.toContain("followed");
  });
});

describe("the grammar of a schema", () => {
  it.each(cases)("lets through %s", async (_name, schema, accepted, rejected) => {
    const matches = await matcherOf(schema);
    for (const text of accepted) expect([text, matches(text)]).toEqual([text, true]);
    for (const text of rejected) expect([text, matches(text)]).toEqual([text, false]);
  });

  it("never refuses what satisfies the schema, written short or with blanks", async () => {
    await fc.assert(
      fc.asyncProperty(
        makeParametersCases(3).chain(({ instance, schema }) =>
          fc.tuple(fc.constant(schema), fc.array(instance, { minLength: 3, maxLength: 3 })),
        ),
        async ([schema, instances]) => {
          const matches = await matcherOf(schema);
          for (const instance of instances) {
            const short = JSON.stringify(instance);
            const long = blanks(short);
            expect([short, matches(short), matches(long)]).toEqual([short, true, true]);
          }
        },
      ),
      { numRuns: 150 },
    );
  }, 30_000);

  it("takes numbers of every size but those that would become infinite", async () => {
    const matches = await matcherOf({ type: "object", properties: { n: { type: "number" } } });
    for (const value of [0, -1, 0.1, 1e21, 1.7e-7, 5e-324, 123_456_789_012_345_680_000, 9.9e307]) {
      expect([value, matches(JSON.stringify({ n: value }))]).toEqual([value, true]);
    }
    for (const text of ["1e999", "1e310", "12e307", "NaN", "+1", ".5", "1."]) {
      expect([text, matches(`{"n":${text}}`)]).toEqual([text, false]);
    }
  });

  it("allows any object, and says why, where a schema cannot be followed", async () => {
    const twice = { type: "object", anyOf: [{ $ref: "#/$defs/x" }, { $ref: "#/$defs/x" }] };
    const many = (count: number): JsonObject =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`p${index}`, { type: "string" }]),
      );
    const level = Array.from({ length: 40 }, (_, index) => ({
      type: "object",
      properties: many(200 + index),
    }));
    for (const schema of [
      { $ref: "#/$defs/x", $defs: { x: twice } },
      { type: "object", properties: { a: { type: "array", prefixItems: level } } },
      {
        type: "object",
        properties: { a: { enum: Array.from({ length: 60_000 }, (_, i) => `v${i}`) } },
      },
      { type: "object", properties: { a: false }, required: ["a"] },
      { type: "string" },
    ]) {
      const startedMs = performance.now();
      const built = buildArgumentsGrammar(schema);
      expect(performance.now() - startedMs).toBeLessThan(2_000);
      expect(built.relaxed).not.toBeNull();
      expect((await openMatcher(built.grammar))('{"a":1}')).toBe(true);
    }
  });

  it("leaves alone an object of more properties than can be followed", async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`p${index}`, { type: "string" }]),
    );
    const matches = await matcherOf({ type: "object", properties });
    expect(matches('{"p299":1}')).toBe(true);
  });
});

/** A blank behind every comma and colon; only for texts without such characters in strings. */
function blanks(text: string): string {
  const inStrings = /"(?:[^"\\]|\\.)*"/gu;
  for (const [string] of text.matchAll(inStrings)) if (/[,:]/u.test(string)) return text;
  return text.replaceAll(",", ", ").replaceAll(":", ": ");
}

describe("the library's own grammar of a schema", () => {
  it("wants every property written and takes anyOf for null, so that ours stands in its place", async () => {
    const value = { anyOf: [{ type: "integer" }, { type: "null" }] } as const;
    const schema = {
      type: "object",
      properties: { a: { type: "string" }, b: value },
      required: ["a"],
    } as const;
    // Its types have no anyOf either.
    const theirs = await llama.createGrammarForJsonSchema(schema as never);
    const test = Reflect.get(theirs, "_testText") as (text: string) => boolean;
    const end = "\n".repeat(4);
    const allows = (text: string): boolean => Reflect.apply(test, theirs, [text + end]);
    expect(allows('{"a": "x", "b": null}')).toBe(true);
    expect(allows('{"a": "x"}')).toBe(false);
    expect(allows('{"a": "x", "b": 5}')).toBe(false);
    const ours = await matcherOf(schema);
    for (const text of ['{"a": "x", "b": null}', '{"a": "x"}', '{"a": "x", "b": 5}'])
      expect([text, ours(text)]).toEqual([text, true]);
  });
});

describe("the grammars of names and of text", () => {
  it("take one of the names, also where one begins like another", async () => {
    const names = ["get", "get_all", "set", "a.b-c"];
    const matches = await openMatcher(buildNamesGrammar(names, '"'));
    for (const name of names) expect(matches(`${name}"`)).toBe(true);
    for (const text of ["get", 'ge"', 'get_"', 'other"', 'get"x', ""])
      expect(matches(text)).toBe(false);
  });

  it("take a JSON object or the marker of a call", async () => {
    const matches = await openMatcher(buildJsonOrMarkerGrammar("<tool_call>"));
    for (const text of ["<tool_call>", '{"a":1}', " {}"]) expect(matches(text)).toBe(true);
    for (const text of ["<tool", "hello", "<tool_call>{}"]) expect(matches(text)).toBe(false);
  });
});

describe("a character that the vocabulary cannot write", () => {
  it("is written as JSON's escapes, in names and values, and only so", async () => {
    const schema: JsonObject = {
      type: "object",
      properties: { "é\u{40000}": { enum: ["\u{40000}x", "\u{40000}y", "日"] } },
      required: ["é\u{40000}"],
      additionalProperties: false,
    };
    const { grammar } = buildArgumentsGrammar(schema);
    const matches = await openMatcher(escapeUnwritable(grammar, (one) => one !== "\u{40000}"));
    expect(matches(String.raw`{"é\ud8c0\udc00":"\ud8c0\udc00y"}`)).toBe(true);
    expect(matches(String.raw`{"é\ud8c0\udc00":"日"}`)).toBe(true);
    expect(matches('{"é\u{40000}":"日"}')).toBe(false);
    const all = await openMatcher(escapeUnwritable(grammar, () => true));
    expect(all('{"é\u{40000}":"\u{40000}x"}')).toBe(true);
  });
});
