import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inputBound, inputTokensEstimate } from "../../src/admission/input-bound.ts";
import {
  affordableOutputTokens,
  decideAllowance,
  type AllowanceDecision,
  type AllowanceOrder,
} from "../../src/admission/output-allowance.ts";
import type { Prices } from "../../src/admission/price.ts";

const defaultPrices: Prices = {
  inputNanosPerMillion: 1_000_000_000n,
  outputNanosPerMillion: 4_000_000_000n,
};

/** Exact cost as a fraction of a nano: what the reservation must cover, however it is rounded. */
function covers(nanos: bigint, input: number, output: number, prices: Prices): boolean {
  const exact =
    BigInt(input) * prices.inputNanosPerMillion + BigInt(output) * prices.outputNanosPerMillion;
  return nanos * 1_000_000n >= exact;
}

/** Tries every allowance downwards: slow, and obviously the rule of the contract. */
function bruteForce(order: AllowanceOrder, prices: Prices): number | null {
  const context = order.fitting === null ? 65_536 : Math.max(order.fitting, 1);
  const wanted = Math.min(order.requested ?? 32_768, 65_536, context);
  if (order.requested !== null)
    return covers(order.availableNanos, order.inputBound, wanted, prices) ? wanted : null;
  for (let tokens = wanted; tokens >= 1; tokens -= 1)
    if (covers(order.availableNanos, order.inputBound, tokens, prices)) return tokens;
  return null;
}

const price = fc.oneof(
  fc.constantFrom(0n, 1n, 999_999n, 1_000_000n, 1_000_001n, 1_000_000_000n, 4_000_000_000n),
  fc.bigInt(0n, 50_000_000_000n),
);
const pricesArbitrary = fc.record({ inputNanosPerMillion: price, outputNanosPerMillion: price });
const tokens = fc.oneof(
  fc.constantFrom(1, 2, 4_095, 32_767, 32_768, 32_769, 65_535, 65_536, 65_537, 2 ** 53 - 1),
  fc.integer({ min: 1, max: 70_000 }),
);
const orderArbitrary = fc
  .record({
    inputBound: fc.oneof(
      fc.integer({ min: 65, max: 3_000 }),
      fc.integer({ min: 65, max: 2_000_000 }),
    ),
    requested: fc.option(tokens, { nil: null }),
    fitting: fc.option(fc.oneof(fc.integer({ min: -5, max: 40_000 }), tokens), { nil: null }),
    prices: pricesArbitrary,
    // Around what some number of tokens costs, so that edges are met and not only passed over.
    affords: fc.integer({ min: 0, max: 70_000 }),
    off: fc.constantFrom(-1n, 0n, 1n),
  })
  .map(({ affords, off, prices, ...order }) => {
    const exact =
      BigInt(order.inputBound) * prices.inputNanosPerMillion +
      BigInt(affords) * prices.outputNanosPerMillion;
    const around = exact / 1_000_000n + off;
    return { order: { ...order, availableNanos: around < 0n ? 0n : around }, prices };
  });

function grantedTokens(decision: AllowanceDecision): number | null {
  return decision.granted ? decision.allowance : null;
}

describe("the output allowance", () => {
  test("is the one that trying every number finds", () => {
    fc.assert(
      fc.property(orderArbitrary, ({ order, prices }) => {
        const decision = decideAllowance(order, prices);
        expect(grantedTokens(decision)).toBe(bruteForce(order, prices));
        if (decision.granted) {
          expect(decision.reservedNanos <= order.availableNanos).toBe(true);
          expect(covers(decision.reservedNanos, order.inputBound, decision.allowance, prices)).toBe(
            true,
          );
          // Not a nano more than that needs.
          expect(
            decision.reservedNanos === 0n ||
              !covers(decision.reservedNanos - 1n, order.inputBound, decision.allowance, prices),
          ).toBe(true);
        } else {
          expect(decision.neededNanos > order.availableNanos).toBe(true);
        }
      }),
      { numRuns: 400 },
    );
  });

  test("tells how many tokens the credit would pay for, up to the cap", () => {
    fc.assert(
      fc.property(orderArbitrary, ({ order, prices }) => {
        const { availableNanos, inputBound: bound } = order;
        const affordable = affordableOutputTokens(bound, availableNanos, prices);
        expect(affordable).toBeGreaterThanOrEqual(0);
        expect(affordable).toBeLessThanOrEqual(65_536);
        if (affordable > 0) expect(covers(availableNanos, bound, affordable, prices)).toBe(true);
        if (affordable < 65_536)
          expect(covers(availableNanos, bound, affordable + 1, prices)).toBe(false);
      }),
      { numRuns: 400 },
    );
  });

  const ample = 10n ** 15n;
  test.each([
    [
      "omitted with ample credit",
      { requested: null, fitting: null, availableNanos: ample },
      32_768,
    ],
    ["omitted, cut to the context", { requested: null, fitting: 100, availableNanos: ample }, 100],
    ["one above the cap", { requested: 65_537, fitting: null, availableNanos: ample }, 65_536],
    ["explicit, cut to the context", { requested: 500, fitting: 100, availableNanos: ample }, 100],
    ["a context that is full", { requested: null, fitting: -7, availableNanos: ample }, 1],
    // 1,000 input tokens cost 1,000,000 nanos and each output token 4,000.
    [
      "omitted with credit for 1",
      { requested: null, fitting: null, availableNanos: 1_004_000n },
      1,
    ],
    [
      "omitted with credit for 2",
      { requested: null, fitting: null, availableNanos: 1_008_000n },
      2,
    ],
    [
      "omitted with credit for 4,095",
      { requested: null, fitting: null, availableNanos: 17_380_000n },
      4_095,
    ],
    [
      "omitted, too little for 1",
      { requested: null, fitting: null, availableNanos: 1_003_999n },
      null,
    ],
    ["explicit, exactly paid", { requested: 50, fitting: null, availableNanos: 1_200_000n }, 50],
    [
      "explicit, one nano short",
      { requested: 50, fitting: null, availableNanos: 1_199_999n },
      null,
    ],
  ])("%s", (_name, order, expected) => {
    const decision = decideAllowance({ inputBound: 1_000, ...order }, defaultPrices);
    expect(grantedTokens(decision)).toBe(expected);
  });

  test("a refusal names what is needed and what could be had", () => {
    const order = { inputBound: 1_000, requested: 50, fitting: null, availableNanos: 1_100_000n };
    expect(decideAllowance(order, defaultPrices)).toEqual({
      granted: false,
      neededNanos: 1_200_000n,
      affordable: 25,
    });
  });
});

describe("the input bound", () => {
  test("counts bytes and the overhead of items, tools and the request", () => {
    expect(inputBound(0, 0, 0)).toBe(64);
    expect(inputBound(100, 3, 2)).toBe(100 + 48 + 32 + 64);
  });

  test("the estimate is a quarter of the bytes, rounded up", () => {
    expect([0, 1, 4, 5].map((bytes) => inputTokensEstimate(bytes, bytes))).toEqual([0, 1, 1, 2]);
  });

  test("the estimate takes the shorter of the body and the prompt", () => {
    expect([inputTokensEstimate(5, 400), inputTokensEstimate(400, 5)]).toEqual([2, 2]);
  });
});
