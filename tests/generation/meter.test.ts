import { describe, expect, it } from "vitest";
import type { GenerationEvent, Usage } from "../../src/conversation/generation-event.ts";
import { openMeter } from "../../src/generation/meter.ts";

const delta = (text: string): GenerationEvent => ({ type: "text-delta", text });
const usage = (inputTokens: number, outputTokens: number): Usage => ({
  inputTokens,
  cachedInputTokens: 0,
  outputTokens,
  reasoningTokens: 0,
});

describe("the meter", () => {
  it("knows that output began with the first piece of anything, not with a start", () => {
    const meter = openMeter(7);
    meter.add([{ type: "text-start" }], null);
    expect(meter.outputBegan).toBe(false);
    meter.add([delta("a")], null);
    expect(meter.outputBegan).toBe(true);
  });

  it("counts a token a delta, and more where a delta is long", () => {
    const short = openMeter(7);
    short.add([delta("a"), delta("b"), delta("c")], null);
    expect(short.usage(null)).toEqual(usage(7, 3));
    const long = openMeter(7);
    long.add([delta("x".repeat(401))], null);
    expect(long.usage(null).outputTokens).toBe(101);
  });

  it("prefers what the deployment reported, then running usage, then its own count", () => {
    const meter = openMeter(7);
    meter.add([delta("a"), delta("b")], usage(10, 1));
    expect(meter.usage(usage(11, 2))).toEqual(usage(11, 2));
    expect(meter.usage(null)).toEqual(usage(10, 1));
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60])(
    "replaces an absurd figure (%d) and keeps the sensible ones beside it",
    (absurd) => {
      const meter = openMeter(7);
      meter.add([delta("a"), delta("b")], null);
      expect(meter.usage(usage(11, absurd))).toEqual(usage(11, 2));
      expect(meter.usage(usage(absurd, 5))).toEqual(usage(7, 5));
    },
  );

  it("never tells more cached or reasoning tokens than there are tokens", () => {
    const reported = { inputTokens: 3, cachedInputTokens: 9, outputTokens: 2, reasoningTokens: 5 };
    expect(openMeter(1).usage(reported)).toEqual({
      inputTokens: 3,
      cachedInputTokens: 3,
      outputTokens: 2,
      reasoningTokens: 2,
    });
  });
});
