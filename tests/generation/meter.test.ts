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

const open = () => openMeter({ inputTokensEstimate: 7, inputTokensMax: 100, outputTokensMax: 200 });

describe("the meter", () => {
  it("knows that output began with the first piece of anything, not with a start", () => {
    const meter = open();
    meter.add([{ type: "text-start" }], null);
    expect(meter.outputBegan).toBe(false);
    meter.add([delta("a")], null);
    expect(meter.outputBegan).toBe(true);
  });

  it("counts a token a delta, and more where a delta is long", () => {
    const short = open();
    short.add([delta("a"), delta("b"), delta("c")], null);
    expect(short.usage(null)).toEqual(usage(7, 3));
    const long = open();
    long.add([delta("x".repeat(401))], null);
    expect(long.usage(null).outputTokens).toBe(101);
  });

  it("prefers what the deployment reported, then running usage, then its own count", () => {
    const meter = open();
    meter.add([delta("a"), delta("b")], usage(10, 1));
    expect(meter.usage(usage(11, 2))).toEqual(usage(11, 2));
    expect(meter.usage(null)).toEqual(usage(10, 1));
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 201, 2 ** 60])(
    "replaces an absurd figure (%d) and keeps the sensible ones beside it",
    (absurd) => {
      const meter = open();
      meter.add([delta("a"), delta("b")], null);
      expect(meter.usage(usage(11, absurd))).toEqual(usage(11, 2));
      expect(meter.usage(usage(absurd, 5))).toEqual(usage(7, 5));
    },
  );

  it("takes no output of 0 for a count once there is output, whoever says it and when", () => {
    const meter = open();
    meter.add([], usage(10, 0));
    expect(meter.usage(null)).toEqual(usage(10, 0));
    meter.add(
      Array.from({ length: 50 }, () => delta("word")),
      null,
    );
    expect(meter.usage(null)).toEqual(usage(10, 50));
    expect(meter.usage(usage(10, 0))).toEqual(usage(10, 50));
    meter.add([delta("word")], usage(10, 40));
    meter.add([delta("word")], usage(10, 0));
    expect(meter.usage(usage(0, 0))).toEqual(usage(0, 40));
  });

  it("keeps running usage where a later one cannot be", () => {
    const meter = open();
    meter.add([delta("a")], { ...usage(10, 5), cachedInputTokens: 4, reasoningTokens: 2 });
    meter.add([delta("a")], usage(101, 201));
    meter.add([delta("a")], usage(Number.NaN, Number.NaN));
    const running = { ...usage(10, 5), cachedInputTokens: 4, reasoningTokens: 2 };
    expect(meter.usage(null)).toEqual(running);
    expect(meter.usage(usage(2 ** 53 - 1, 2 ** 53 - 1))).toEqual(running);
    expect(meter.usage({ ...running, cachedInputTokens: -1, reasoningTokens: 0.5 })).toEqual(
      running,
    );
  });

  it("never counts more than was admitted", () => {
    const meter = openMeter({ inputTokensEstimate: 7, inputTokensMax: 5, outputTokensMax: 9 });
    meter.add(
      Array.from({ length: 50 }, () => delta("word")),
      null,
    );
    expect(meter.usage(null)).toEqual(usage(5, 9));
    expect(meter.usage(usage(5, 9))).toEqual(usage(5, 9));
  });

  it("never tells more cached or reasoning tokens than there are tokens", () => {
    const reported = { inputTokens: 3, cachedInputTokens: 9, outputTokens: 2, reasoningTokens: 5 };
    expect(open().usage(reported)).toEqual({
      inputTokens: 3,
      cachedInputTokens: 3,
      outputTokens: 2,
      reasoningTokens: 2,
    });
  });
});
