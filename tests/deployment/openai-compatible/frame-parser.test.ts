import * as fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { FrameParser } from "../../../src/deployment/openai-compatible/frame-parser.ts";

afterEach(() => void vi.restoreAllMocks());

/** Texts that look like what stands around them, and all that needs escapes. */
const text = fc.oneof(
  fc.constantFrom(
    " token",
    "",
    "~",
    "content",
    "}",
    '"}',
    "\\",
    '\\"',
    '"},"finish_reason":null}],"usage":{"prompt_tokens":1}}',
    ',"usage":',
    '"delta":{"content":"',
    "a\nb\u0000",
    "\ud800",
    "😀",
  ),
  fc.string({ unit: "binary", maxLength: 6 }),
);

const piece = fc.oneof(
  fc.record({ content: text }),
  fc.record({ reasoning_content: text }),
  fc.record({ reasoning: text, reasoning_content: text }),
  fc.record({ role: fc.constant("assistant"), content: fc.oneof(text, fc.constant(null)) }),
  fc.record({ content: text, refusal: text }),
  text.map((written) => ({ tool_calls: [{ index: 0, function: { arguments: written } }] })),
);

const usage = fc.oneof(
  fc.constantFrom<unknown>(null, {}, [], "none", 0),
  fc.record({ prompt_tokens: fc.nat(), completion_tokens: fc.nat() }),
);

/** Members of a chunk beside its choices, in front of them or behind, as engines differ. */
interface Surroundings {
  readonly front: Readonly<Record<string, unknown>>;
  readonly back: Readonly<Record<string, unknown>>;
  readonly space: string;
}

const surroundings: fc.Arbitrary<Surroundings> = fc.record({
  front: fc.record({ id: text, usage }, { requiredKeys: [] }),
  back: fc.record(
    { created: fc.nat({ max: 1 }), usage, timings: fc.record({ usage }, { requiredKeys: [] }) },
    { requiredKeys: [] },
  ),
  space: fc.constantFrom("", "", " "),
});

const damage = fc.record({
  at: fc.nat({ max: 200 }),
  removed: fc.nat({ max: 3 }),
  put: fc.constantFrom("", "", '"', "}", ",", "\\", "1", '"usage":1', '"content":"x",', " "),
});

/** The frames of one stream: most are like the one before, some are from elsewhere, some are damaged. */
const frames = fc
  .tuple(
    fc.array(surroundings, { minLength: 1, maxLength: 2 }),
    fc.array(
      fc.record({
        piece: fc.oneof({ weight: 4, arbitrary: fc.record({ content: text }) }, piece),
        usage,
        elsewhere: fc.nat({ max: 5 }),
        damage: fc.option(damage, { freq: 4 }),
      }),
      { minLength: 2, maxLength: 12 },
    ),
  )
  .map(([places, steps]) =>
    steps.map((step) => {
      const { front, back, space } = places[step.elsewhere] ?? places[0] ?? never();
      const choice = { index: 0, delta: step.piece, finish_reason: null };
      const chunk = { ...front, choices: [choice], ...back };
      const counted = "usage" in back ? { ...chunk, usage: step.usage } : chunk;
      const written = JSON.stringify(counted, null, space);
      if (step.damage === null) return written;
      const { at, put, removed } = step.damage;
      return written.slice(0, at) + put + written.slice(at + removed);
    }),
  );

function never(): never {
  throw new Error("a stream has no frames of any kind");
}

function outcomeOf(parse: () => unknown): unknown {
  try {
    return { value: structuredClone(parse()) };
  } catch {
    return "no JSON";
  }
}

/** A parser that learns as soon as it may. */
function openParser(): FrameParser {
  return new FrameParser(1);
}

test("every frame of every stream has the value that JSON.parse gives it", () => {
  fc.assert(
    fc.property(frames, (stream) => {
      const parser = openParser();
      for (const frame of stream)
        expect(outcomeOf(() => parser.parse(frame))).toStrictEqual(
          outcomeOf(() => JSON.parse(frame)),
        );
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  [
    "an id that is the same text",
    '{"id":"x","choices":[{"delta":{"content":"x"}}]}',
    '{"id":"y","choices":[{"delta":{"content":"x"}}]}',
  ],
  [
    "a name that ends like the one looked for",
    '{"a\\"content":"x","choices":[{"delta":{"content":"x"}}]}',
    '{"a\\"content":"y","choices":[{"delta":{"content":"x"}}]}',
  ],
  [
    "a usage within the usage",
    '{"choices":[{"delta":{"content":"x"}}],"usage":{"a":1,"usage":2}}',
    '{"choices":[{"delta":{"content":"x"}}],"usage":{"a":3,"usage":4}}',
  ],
  [
    "another end",
    '{"choices":[{"delta":{"content":"x"}}],"usage":1}',
    '{"choices":[{"delta":{"content":"x"}}],"usage":2]',
  ],
  [
    "more behind the end",
    '{"choices":[{"delta":{"content":"x"}}]}',
    '{"choices":[{"delta":{"content":"x"}}]}}',
  ],
])("is not misled by %s", (_name, first, second) => {
  const parser = openParser();
  for (const frame of [first, second, first])
    expect(outcomeOf(() => parser.parse(frame))).toStrictEqual(outcomeOf(() => JSON.parse(frame)));
});

describe("of frames as engines send them", () => {
  const head =
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m"';
  const engines: Readonly<Record<string, (token: number) => string>> = {
    "vLLM, with its running usage": (token) =>
      `${head},"choices":[{"index":0,"delta":{"content":"t ${token}"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":5,"total_tokens":${5 + token},"completion_tokens":${token}}}`,
    "one that ends with the usage it has not": (token) =>
      `${head},"choices":[{"index":0,"delta":{"content":"t ${token}"},"finish_reason":null}],"usage":null}`,
    "llama.cpp, whose choices come first": (token) =>
      `{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"t ${token}"}}],"created":1760000000,"id":"c","model":"m","object":"chat.completion.chunk"}`,
    "a thought": (token) =>
      `${head},"choices":[{"index":0,"delta":{"reasoning_content":"t ${token}","content":null}}]}`,
    "the arguments of a call": (token) =>
      `${head},"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"t ${token}"}}]}}]}`,
    "usage in the middle": (token) =>
      `${head},"usage":null,"choices":[{"index":0,"delta":{"content":"t ${token}"}}],"service_tier":null}`,
  };

  test.each(Object.entries(engines))("only the first is parsed whole: %s", (_name, frameOf) => {
    const parser = openParser();
    parser.parse(frameOf(1));
    const parse = vi.spyOn(JSON, "parse");
    for (let token = 2; token < 9; token += 1) parser.parse(frameOf(token));
    for (const [given] of parse.mock.calls) expect(given.length).toBeLessThan(80);
    expect(parse).toHaveBeenCalled();
  });

  test("nothing is learned of an answer of a few words", () => {
    const parser = new FrameParser();
    const parse = vi.spyOn(JSON, "parse");
    for (let token = 0; token < 15; token += 1)
      parser.parse(`{"choices":[{"index":0,"delta":{"content":"t ${token}"}}]}`);
    expect(parse).toHaveBeenCalledTimes(15);
  });

  test("where each is another, ever fewer are looked at", () => {
    const parser = new FrameParser();
    const parse = vi.spyOn(JSON, "parse");
    for (let token = 0; token < 256; token += 1)
      parser.parse(`{"choices":[{"index":0,"delta":{"content":"t"}}],"created":${token}}`);
    // One each, and the few looks.
    expect(parse.mock.calls.length).toBeLessThan(256 + 5 * 6);
  });

  test("where two kinds alternate, few are learned", () => {
    const parser = new FrameParser();
    const stringify = vi.spyOn(JSON, "stringify");
    for (let token = 0; token < 640; token += 1)
      parser.parse(`{"choices":[{"index":0,"delta":{"content":"t"}}],"created":${token % 2}}`);
    // Three each.
    expect(stringify.mock.calls.length).toBeLessThan((3 * 640) / 16 + 4);
  });

  test("where what stays the same changes from time to time, it is learned again each time", () => {
    const parser = openParser();
    const parse = vi.spyOn(JSON, "parse");
    let whole = 0;
    for (let token = 0; token < 640; token += 1) {
      const frame = `{"choices":[{"index":0,"delta":{"content":"t ${token}"}}],"created":${token >> 5}}`;
      parse.mockClear();
      parser.parse(frame);
      if (parse.mock.calls.some(([given]) => given === frame)) whole += 1;
    }
    expect(whole).toBe(640 / 32);
  });
});
