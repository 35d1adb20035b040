import { describe, expect, test } from "vitest";
import type { Usage } from "../../../src/conversation/generation-event.ts";
import {
  type AnswerReader,
  openAnswerReader,
} from "../../../src/deployment/openai-compatible/answer-reader.ts";
import { Failure } from "../../../src/failure.ts";
import { limits } from "../../../src/limits.ts";

function open(most: { readonly outputTokensMax?: number } = {}): AnswerReader {
  let ids = 0;
  return openAnswerReader("text/event-stream", {
    newId: (prefix) => `${prefix}${(ids += 1)}`,
    failureOf: () => new Failure("deployment_failed", "An error inside."),
    inputTokensMax: 500,
    outputTokensMax: 100,
    ...most,
  });
}

function addFrame(reader: AnswerReader, data: string): void {
  reader.add(Buffer.from(`data: ${data}\n\n`));
}

function add(reader: AnswerReader, ...chunks: readonly unknown[]): void {
  for (const chunk of chunks) addFrame(reader, JSON.stringify(chunk));
}

const text = (content: string, rest: object = {}) => ({
  choices: [{ index: 0, delta: { content } }],
  ...rest,
});
const stop = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const said = (prompt: unknown, completion: unknown, rest: object = {}) => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion, ...rest },
});
const tokens = (inputTokens: number, outputTokens: number): Partial<Usage> => ({
  inputTokens,
  outputTokens,
});

function textOf(reader: AnswerReader): string {
  return reader
    .takeEvents()
    .map((event) => (event.type === "text-delta" ? event.text : ""))
    .join("");
}

test("of several answers only the first is read, wherever it stands", () => {
  const reader = open();
  add(
    reader,
    { choices: [{ index: 1, delta: { content: "other" }, finish_reason: "length" }] },
    text("this"),
    { choices: [{ index: 2, delta: { content: "third" } }, { index: 0 }] },
    { choices: [{ delta: { content: " one" } }] },
    stop,
  );
  expect(textOf(reader)).toBe("this one");
  expect(reader.finish().finish.reason).toBe("stop");
});

describe("usage", () => {
  test.each([
    ["is empty", {}],
    ["is no object", { usage: 5 }],
    ["is below zero", said(-1, -1)],
    ["is not whole", said(1.5, 2.5)],
    ["is text", said("9", "9")],
    ["is beyond what was allowed", said(501, 101)],
    ["is beyond all numbers", said(2 ** 53 - 1, 2 ** 53 - 1)],
  ])("that %s leaves the one before it, in the same read and at the end", (_how, last) => {
    const reader = open();
    add(reader, text("a", said(7, 3)), {
      choices: [],
      ...("usage" in last ? last : { usage: last }),
    });
    expect(reader.takeUsage()).toMatchObject(tokens(7, 3));
    expect(reader.takeUsage()).toBeNull();
    add(reader, stop);
    expect(reader.finish().usage).toMatchObject(tokens(7, 3));
  });

  test("of an output of 0 counts before there is output, and not after", () => {
    const reader = open();
    add(reader, { choices: [], ...said(7, 0) });
    expect(reader.takeUsage()).toMatchObject(tokens(7, 0));
    add(reader, text("a", said(7, 2)), { choices: [], ...said(8, 0) }, stop);
    expect(reader.finish().usage).toMatchObject(tokens(8, 2));
  });

  test("is judged figure by figure, and a part of a figure with the whole", () => {
    const reader = open();
    const cached = { prompt_tokens_details: { cached_tokens: 6 } };
    add(reader, text("a", said(7, 3, cached)), stop, { choices: [], ...said(-1, 4) });
    expect(reader.finish().usage).toEqual({
      inputTokens: 7,
      cachedInputTokens: 6,
      outputTokens: 4,
      reasoningTokens: 0,
    });
    const other = open();
    add(other, text("a"), stop, { choices: [], ...said(null, 4) });
    expect(other.finish().usage).toMatchObject(tokens(Number.NaN, 4));
    const none = open();
    add(none, text("a"), stop, { choices: [], usage: {} });
    expect(none.finish().usage).toBeNull();
  });
});

describe("an answer that outgrows its limit", () => {
  const most = 100 + limits.outputOvershootMax;

  test("by running usage ends as one that was cut, with what came so far", () => {
    const reader = open();
    add(reader, text("a", said(7, 100)), text("b", said(7, most)));
    expect(reader.outgrown).toBe(false);
    add(reader, text("c", said(7, most + 1)), text("d"), stop);
    expect([reader.outgrown, reader.done, reader.finished]).toEqual([true, true, true]);
    expect(textOf(reader)).toBe("abc");
    expect(reader.finish()).toMatchObject({
      finish: { reason: "length" },
      usage: tokens(7, 100),
    });
  });

  test("by its pieces, where there is no running usage, ends when there are twice as many", () => {
    const reader = open();
    for (let piece = 0; piece < 2 * most; piece += 1) add(reader, text("a"));
    expect(reader.outgrown).toBe(false);
    add(reader, text("a"));
    expect(reader.outgrown).toBe(true);
    expect(reader.finish()).toMatchObject({ finish: { reason: "length" }, usage: null });
  });

  test("is not judged by its pieces where the engine counts", () => {
    const reader = open();
    for (let piece = 0; piece < 4 * most; piece += 1) add(reader, text("a", said(7, 50)));
    expect(reader.outgrown).toBe(false);
  });

  test("by its characters ends whatever the engine counts", () => {
    const reader = open();
    add(reader, text("x".repeat(most * limits.charactersPerTokenMax), said(7, 50)));
    expect(reader.outgrown).toBe(false);
    add(reader, text("x", said(7, 50)));
    expect(reader.outgrown).toBe(true);
  });

  test("ends in the middle of a call, and of reasoning", () => {
    const reader = open({ outputTokensMax: 1 });
    add(reader, { choices: [{ delta: { reasoning: "x".repeat(2_000) } }] });
    expect(reader.takeEvents().at(-1)).toEqual({ type: "reasoning-end" });
    const call = open({ outputTokensMax: 1 });
    const written = `{"a":"${"x".repeat(2_000)}`;
    const calls = [{ index: 0, id: "c", function: { name: "f", arguments: written } }];
    add(call, { choices: [{ delta: { tool_calls: calls } }] });
    expect(call.takeEvents().at(-1)).toEqual({ type: "tool-call-end" });
    expect(call.finish().finish.reason).toBe("length");
  });

  test("is none when the engine itself ends it in that frame, or counts what cannot be", () => {
    const reader = open();
    add(reader, text("a", said(7, 2 ** 53 - 1)), text("b", said(7, 2 * most + 1)));
    add(reader, {
      choices: [{ delta: { content: "c" }, finish_reason: "stop" }],
      ...said(7, most + 1),
    });
    expect(reader.outgrown).toBe(false);
    expect(reader.finish().finish.reason).toBe("stop");
  });
});

test("300,000 calls in 300 frames end in the second frame, before most of them were looked at", () => {
  let ids = 0;
  const reader = openAnswerReader("text/event-stream", {
    newId: (prefix) => `${prefix}${(ids += 1)}`,
    failureOf: () => new Failure("deployment_failed", "An error inside."),
    inputTokensMax: 500,
    outputTokensMax: 65_536,
  });
  const calls = Array.from({ length: 1_000 }, () => ({ function: { name: "f" } }));
  const frame = (from: number): string =>
    JSON.stringify({
      choices: [
        { delta: { tool_calls: calls.map((call, index) => ({ ...call, index: from + index })) } },
      ],
    });
  let frames = 0;
  expect(() => {
    for (; frames < 300; frames += 1) addFrame(reader, frame(frames * 1_000));
  }).toThrow("too many parts");
  expect(frames).toBe(1);
  expect(ids).toBe(limits.upstreamPartsMax + 1);
  expect(reader.takeEvents().length).toBeLessThan(10);
});

describe("a frame", () => {
  test.each([
    ["objects", (count: number) => `[${"{},".repeat(count)}0]`],
    ["lists in lists", (count: number) => "[".repeat(count) + "]".repeat(count)],
    ["numbers", (count: number) => `[${"0,".repeat(count)}0]`],
    ["members", (count: number) => `{${'"a":0,'.repeat(count)}"a":0}`],
  ])("of too many %s is refused before it is parsed", (_what, valueOf) => {
    const frame = (value: string) => `{"choices":[],"x":${value}}`;
    const many = valueOf(limits.upstreamFrameCharactersMax / 8);
    expect(() => addFrame(open(), frame(many))).toThrow("too many values");
    expect(() => addFrame(open(), frame(valueOf(limits.upstreamFrameValuesMax / 4)))).not.toThrow();
  });

  test("with all its text in one string is none of these, whatever is in the text", () => {
    const written = JSON.stringify({ a: Array.from({ length: 60_000 }, () => ({ '"\\': [] })) });
    const calls = [{ index: 0, id: "c", function: { name: "f", arguments: written } }];
    const reader = open({ outputTokensMax: 65_536 });
    add(reader, { choices: [{ delta: { tool_calls: calls }, finish_reason: "stop" }] });
    expect(reader.takeEvents()).toContainEqual({ type: "tool-call-delta", arguments: written });
  });

  test("that a pattern would fit is looked at as well when it is long", () => {
    const reader = open();
    for (let piece = 0; piece < 40; piece += 1) add(reader, text(`piece ${piece}`));
    const long = JSON.stringify(text("~")).replace('"~"', `[${"{},".repeat(100_000)}0]`);
    expect(() => addFrame(reader, long)).toThrow("too many values");
  });

  test("with arguments that cannot be written again ends the answer", () => {
    const reader = open();
    const cannot = {
      toJSON: () => {
        throw new RangeError("too deep");
      },
    };
    const parse = JSON.parse;
    JSON.parse = () => ({
      choices: [{ delta: { tool_calls: [{ function: { name: "f", arguments: cannot } }] } }],
    });
    try {
      expect(() => addFrame(reader, "{}")).toThrow("arguments that cannot be read");
    } finally {
      JSON.parse = parse;
    }
  });
});
