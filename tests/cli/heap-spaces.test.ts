import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { heapFlags, watchYoungSpace } from "../../src/cli/heap-spaces.ts";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

const { youngSpaceGrownBytes, youngSpaceLookMs } = limits;

test("the space for young objects grows up to its bound, and again when V8 has made it smaller", () => {
  const timers = openManualTimers();
  const told: boolean[] = [];
  let size = 1_000;
  watchYoungSpace(timers, { bytes: () => size, setGrowth: (grows) => told.push(grows) });
  for (const next of [youngSpaceGrownBytes - 1, youngSpaceGrownBytes, 2 * youngSpaceGrownBytes]) {
    size = next;
    timers.advance(youngSpaceLookMs);
  }
  expect(told).toEqual([true, false]);
  size = youngSpaceGrownBytes / 2;
  timers.advance(2 * youngSpaceLookMs);
  expect(told).toEqual([true, false, true]);
});

test("V8 knows each flag that is set: one that it does not know would be passed over", () => {
  const known = execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  for (const flag of heapFlags) expect(known).toContain(`  ${flag} (`);
});
