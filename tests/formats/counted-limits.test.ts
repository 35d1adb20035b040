import { expect, test } from "vitest";
import {
  type CountedTools,
  ensureCountedLimits,
  openToolCounter,
} from "../../src/formats/counted-limits.ts";
import { refusalOf } from "./answer-context.ts";

const sourceOf = (bytes: number) => [`é${"x".repeat(bytes - 6)}`];
const ensure = (itemCount: number, tools: CountedTools): void =>
  ensureCountedLimits({ itemsParam: "input", itemCount, tools });

test("tools are counted over all sources", () => {
  const tools = openToolCounter();
  tools.add([1], 100);
  tools.add([2], 28);
  expect(tools.count).toBe(128);
  ensure(1, tools);
  tools.add([3], 1);
  expect(refusalOf(() => ensure(1, tools))).toMatchObject({
    code: "invalid_request",
    facts: { param: "tools" },
  });
});

test("one MiB of tool JSON is taken, one byte more is not, counted in UTF-8 over all sources", () => {
  const half = 512 * 1024;
  const tools = openToolCounter();
  expect(Buffer.byteLength(JSON.stringify(sourceOf(half)))).toBe(half);
  tools.add(sourceOf(half), 1);
  tools.add(sourceOf(half), 1);
  ensure(1, tools);
  tools.add([""], 0);
  expect(refusalOf(() => ensure(1, tools)).facts.param).toBe("tools");
  const other = openToolCounter();
  other.add(sourceOf(half), 1);
  other.add(sourceOf(half + 1), 1);
  expect(refusalOf(() => ensure(1, other)).facts.param).toBe("tools");
});

test("2,000 items are taken, 2,001 are not", () => {
  const none = { count: 0, bytes: 0 };
  ensure(2_000, none);
  expect(refusalOf(() => ensure(2_001, none))).toMatchObject({
    code: "invalid_request",
    facts: { param: "input" },
  });
});
