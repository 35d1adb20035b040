import { expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { openTokenBuckets } from "../../src/http/token-buckets.ts";

it("a key looks 60 times at once, then ten times a second, whatever others do", () => {
  let nowMs = 5_000;
  const buckets = openTokenBuckets(() => nowMs);
  const looks = (key: string): number => {
    for (let count = 0; ; count += 1)
      try {
        buckets.take(key);
      } catch (error) {
        expect(error).toBeInstanceOf(Failure);
        expect(error).toMatchObject({ code: "rate_limited", facts: { retryAfterSeconds: 1 } });
        return count;
      }
  };
  expect(looks("one")).toBe(60);
  expect(looks("one")).toBe(0);
  expect(looks("other")).toBe(60);
  nowMs += 1_000;
  expect(looks("one")).toBe(10);
  nowMs += 3_600_000;
  expect(looks("one")).toBe(60);
});

it("a key that looked lately is remembered among any number of others", () => {
  let nowMs = 0;
  const buckets = openTokenBuckets(() => nowMs);
  for (let look = 0; look < 60; look += 1) buckets.take("mine");
  for (let other = 0; other < 12_500; other += 1) {
    nowMs += 0.02;
    buckets.take(`trib_${String(other)}`);
  }
  // A quarter of a second has passed: two looks.
  buckets.take("mine");
  buckets.take("mine");
  expect(() => buckets.take("mine")).toThrow(Failure);
});
