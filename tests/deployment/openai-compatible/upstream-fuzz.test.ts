import { expect, test } from "vitest";
import { fuzzUpstream } from "../../fuzz/upstream.ts";

// More of them: npm run fuzz:upstream -- --runs 50000.
test("mutated streams of the recordings have one ending each, and are an answer in every format", async () => {
  const { endings } = await fuzzUpstream(20_261_122, 150);
  expect(endings.get("finished")).toBeGreaterThan(40);
  expect(endings.get("deployment_failed")).toBeGreaterThan(20);
});
