import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chargeNanos,
  costNanos,
  formatCredit,
  parseCredit,
  type Prices,
} from "../../src/admission/price.ts";

const prices: Prices = {
  inputNanosPerMillion: 1_000_000_000n,
  outputNanosPerMillion: 4_000_000_000n,
};

describe("cost", () => {
  test("is the price of each token, in nanos", () => {
    expect(costNanos(1_000_000, 0, prices)).toBe(1_000_000_000n);
    expect(costNanos(0, 1_000_000, prices)).toBe(4_000_000_000n);
    expect(costNanos(3, 5, prices)).toBe(23_000n);
  });

  test("is rounded up to a whole nano", () => {
    const cheap = { inputNanosPerMillion: 1n, outputNanosPerMillion: 0n };
    expect(costNanos(0, 9, cheap)).toBe(0n);
    expect(costNanos(1, 0, cheap)).toBe(1n);
    expect(costNanos(1_000_000, 0, cheap)).toBe(1n);
    expect(costNanos(1_000_001, 0, cheap)).toBe(2n);
  });

  test("is exact where a float is not", () => {
    const dear = { inputNanosPerMillion: 9_007_199_254_740_993n, outputNanosPerMillion: 1n };
    expect(costNanos(1_000_000, 0, dear)).toBe(9_007_199_254_740_993n);
    expect(costNanos(2_000_000, 1, dear)).toBe(18_014_398_509_481_987n);
  });

  test("never exceeds the reservation", () => {
    const usage = { inputTokens: 10, cachedInputTokens: 0, outputTokens: 10, reasoningTokens: 0 };
    expect(chargeNanos(usage, prices, 50_000n)).toBe(50_000n);
    expect(chargeNanos(usage, prices, 49_999n)).toBe(49_999n);
    expect(chargeNanos(usage, prices, 80_000n)).toBe(50_000n);
  });
});

describe("amounts as text", () => {
  test("what is printed is read back as it was", () => {
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 20n), 10n ** 20n), (nanos) => {
        expect(parseCredit(formatCredit(nanos))).toBe(nanos);
      }),
    );
  });

  test.each([
    ["0", 0n],
    ["10", 10_000_000_000n],
    ["9.999812", 9_999_812_000n],
    ["-0.000000001", -1n],
    ["00.5", 500_000_000n],
  ])("%s", (text, nanos) => {
    expect(parseCredit(text)).toBe(nanos);
  });

  test.each(["", " 1", "1 ", "1.", ".5", "1e3", "0x10", "1,5", "+1", "--1", "1.0000000001", "NaN"])(
    "refuses %j",
    (text) => {
      expect(parseCredit(text)).toBeNull();
    },
  );

  test("prints no zeros that say nothing", () => {
    expect(formatCredit(1_500_000_000n)).toBe("1.5");
    expect(formatCredit(-20_000_000_000n)).toBe("-20");
    expect(formatCredit(1n)).toBe("0.000000001");
  });
});
