import { describe, expect, it, vi } from "vitest";
import { countTextTokens } from "../../src/http/count-text-tokens.ts";
import { limits } from "../../src/limits.ts";
import { threadProcessorMs } from "../doubles/processor-clock.ts";

const count = (text: string): number => countTextTokens({ texts: [text], overheadTokens: 0 });

describe("the token estimate", () => {
  it("counts ordinary text by its vocabulary", () => {
    expect(count("hello world")).toBe(2);
    expect(countTextTokens({ texts: ["hello", " world"], overheadTokens: 7 })).toBe(9);
  });

  it("takes special tokens and lone surrogates for ordinary text", () => {
    expect(count("<|endoftext|>")).toBeGreaterThan(1);
    expect(count("\ud800 half a pair")).toBeGreaterThan(3);
  });

  it.each([
    ["one letter", "a"],
    ["spaces", " "],
    ["line feeds", "\n"],
    ["one sign", "="],
    ["ideographs", "漢字仮名交"],
  ])("answers 4 MiB of %s in well under a second", (_name, unit) => {
    const text = unit.repeat(Math.ceil(limits.bodyBytesMax / Buffer.byteLength(unit)));
    count("warm");
    const startMs = threadProcessorMs();
    const tokens = count(text);
    expect(threadProcessorMs() - startMs).toBeLessThan(limits.tokenizerMs * 2);
    expect(tokens).toBeGreaterThan(1_000);
  });

  it("is the same where other programs have the processor meanwhile", () => {
    const text = "the quick brown fox jumps over the lazy dog ".repeat(400);
    const exact = count(text);
    let nowMs = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 1_000));
    try {
      expect(count(text)).toBe(exact);
    } finally {
      clock.mockRestore();
    }
  });

  it("guesses the rest on the high side when its time is over", () => {
    let nowMs = 0;
    const text = "the quick brown fox jumps over the lazy dog ".repeat(2_000);
    const exact = count(text);
    const guessed = countTextTokens({ texts: [text], overheadTokens: 0 }, () => (nowMs += 1_000));
    expect(guessed).toBeGreaterThan(exact);
    expect(guessed).toBeLessThan(exact * 3);
  });
});
