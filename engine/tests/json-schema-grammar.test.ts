import * as fc from "fast-check";
import { getLlama, LlamaGrammar, LlamaLogLevel, type Llama, type LlamaModel } from "node-llama-cpp";
import { beforeAll, describe, expect, it } from "vitest";
import type { JsonObject, JsonValue, Tool } from "../src/conversation.ts";
import {
  buildJsonOrMarkerGrammar,
  buildNamesGrammar,
  escapeUnwritable,
  openToolGrammars,
} from "../src/tool-grammars.ts";
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
    "enum and const",
    {
      type: "object",
      properties: {
        e: { enum: ["x", "xy", 'z"\\', 1, null, { q: [1] }] },
        t: { type: "string", enum: ["a"] },
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
    "a map from any name, and no other property beside named ones",
    {
      type: "object",
      properties: {
        m: { type: "object", additionalProperties: { type: "integer" } },
        n: { type: "object", properties: {}, additionalProperties: false },
        o: { type: "object" },
      },
      additionalProperties: { type: "integer" },
    },
    ['{"m":{}}', '{"m":{"a":1, "":2},"n":{},"o":{"x":[]}}'],
    ['{"m":{"a":"x"}}', '{"n":{"a":1}}', '{"p":1}', '{"o":1}'],
  ],
  [
    "counted and leading items",
    {
      type: "object",
      properties: {
        l: { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 },
        t: { type: "array", prefixItems: [{ type: "string" }, { type: "boolean" }], items: false },
        u: { type: "array", items: [{ type: "string" }], minItems: 2 },
        o: { type: "array", items: { type: "null" }, maxItems: 1 },
        n: { type: "array", maxItems: 0 },
      },
    },
    [
      '{"l":[1]}',
      '{"l":[1,2, 3]}',
      '{"t":["a",true]}',
      '{"u":["a",null,null]}',
      '{"o":[]}',
      '{"o":[null]}',
      '{"n":[]}',
    ],
    [
      '{"l":[]}',
      '{"l":[1,2,3,4]}',
      '{"t":[]}',
      '{"t":["a",true,1]}',
      '{"t":[true]}',
      '{"o":[null,null]}',
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
    "one of several schemas, and a single one of all",
    {
      type: "object",
      properties: {
        x: { description: "d", anyOf: [{ type: "string" }, { type: "null" }] },
        y: { oneOf: [{ type: "object", properties: { p: { type: "integer" } } }, { const: 1 }] },
        z: { allOf: [{ $ref: "#/properties/x" }], default: null },
      },
    },
    ['{"x":"a"}', '{"x":null,"y":{"p":1},"z":"b"}', '{"y":1}'],
    ['{"x":1}', '{"y":{"p":"1"}}', '{"z":1}'],
  ],
  [
    "no choice beside properties, and nothing of several schemas at once",
    {
      type: "object",
      properties: {
        x: {
          type: "object",
          properties: { k: { type: "string" } },
          anyOf: [{ required: ["k"] }, { required: ["m"] }],
        },
        y: { allOf: [{ type: "object" }, { required: ["p"] }] },
      },
    },
    ['{"x":{},"y":1}', '{"x":{"k":"a"}}'],
    ['{"x":{"k":1}}', '{"x":1}'],
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

const keywords = (
  "a type properties required additionalProperties patternProperties enum const items prefixItems minItems maxItems " +
  "anyOf oneOf allOf $ref $defs not"
).split(" ");

describe("a schema made to cost", () => {
  const uses = (schema: JsonObject) =>
    Object.fromEntries(Array.from({ length: 2_500 }, (_, at) => [`p${String(at)}`, schema]));

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
    const many = (count: number): JsonObject =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`p${index}`, { type: "string" }]),
      );
    const level = Array.from({ length: 40 }, (_, index) => ({
      type: "object",
      properties: many(200 + index),
    }));
    for (const schema of [
      { type: "object", properties: { a: { type: "array", prefixItems: level } } },
      {
        type: "object",
        properties: { a: { enum: Array.from({ length: 60_000 }, (_, i) => `v${i}`) } },
      },
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

describe("the grammar of a tool", () => {
  it("is taken by llama.cpp whatever its schema is, at the worst as that of any object", async () => {
    const warnings: string[] = [];
    const model = { tokenize: () => [], detokenize: () => "" } as unknown as LlamaModel;
    const grammars = openToolGrammars({ llama, model }, (words) => warnings.push(words));
    const { schema } = fc.letrec<{ schema: JsonValue }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<JsonValue>(true, false, null, 0, -1.5, "object", "string", [], "#/items"),
        fc.dictionary(fc.constantFrom(...keywords), tie("schema"), { noNullPrototype: true }),
        fc.record({ $ref: fc.constantFrom("#", "#/anyOf/0", "#/properties/a", "#/%", "#/no") }),
        fc.record({ type: fc.constantFrom("object", "array", "string", "null", "unknown") }),
        fc.array(tie("schema"), { maxLength: 3 }),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...keywords), schema), async (parameters) => {
        const tool: Tool = { name: "t", description: null, parameters };
        expect(await grammars.argumentsOf(tool)).toBeInstanceOf(LlamaGrammar);
      }),
      { numRuns: 500 },
    );
    const circle = { anyOf: [{ $ref: "#/properties/a" }, { type: "string" }] };
    const parameters: JsonObject = { properties: { a: { anyOf: [circle, circle] } } };
    warnings.length = 0;
    await grammars.argumentsOf({ name: "round", description: null, parameters });
    expect(warnings).toEqual([expect.stringMatching(/^tool round: .* any JSON object$/u)]);
  });
});

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
