import { expect, it } from "vitest";
import { holdValue } from "../../src/http/held-value.ts";

it("a value is made once in its time, however often it is asked for, and anew after it", () => {
  let nowMs = 0;
  let made = 0;
  const value = holdValue(() => String((made += 1)), { heldMs: 50, monotonicMs: () => nowMs });
  expect([value(), value()]).toEqual(["1", "1"]);
  nowMs = 49;
  expect(value()).toBe("1");
  nowMs = 50;
  expect([value(), value()]).toEqual(["2", "2"]);
});
