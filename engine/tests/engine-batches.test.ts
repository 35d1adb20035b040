import type { BatchItem } from "node-llama-cpp";
import { describe, expect, it } from "vitest";
import { alonePriority, openBatches, sharingPriority } from "../src/engine-batches.ts";

function item(tokens: number, evaluationPriority: BatchItem["evaluationPriority"]): BatchItem {
  const list = Array.from({ length: tokens }, () => 1);
  return { tokens: list as unknown as BatchItem["tokens"], logits: [], evaluationPriority };
}

function openCase(sharing: number) {
  const batches: { alone: boolean; tokens: number }[] = [];
  const pick = openBatches({
    countSharing: () => sharing,
    onBatch: (batch) => void batches.push(batch),
  });
  return { pick: (items: readonly BatchItem[], size = 128) => pick({ items, size }), batches };
}

const next = () => item(1, sharingPriority);

describe("a batch", () => {
  it("waits for those who are about to come", () => {
    const { batches, pick } = openCase(2);
    expect(pick([next()])).toEqual([]);
    expect(batches).toEqual([]);
    expect(pick([next(), next()])).toHaveLength(2);
    expect(batches).toEqual([{ alone: false, tokens: 2 }]);
  });

  it("goes without who does not come, and waits anew the next time", () => {
    const { pick } = openCase(2);
    for (let batch = 0; batch < 2; batch += 1) {
      let waits = 0;
      while (pick([next()]).length === 0) waits += 1;
      expect(waits).toBeGreaterThan(5);
      expect(waits).toBeLessThan(100);
    }
  });

  it("has one alone that must be repeatable, in its turn, without a wait", () => {
    const { batches, pick } = openCase(3);
    const alone = item(64, alonePriority);
    expect(pick([alone, next()])).toEqual([{ item: alone, processAmount: 64 }]);
    expect(batches).toEqual([{ alone: true, tokens: 64 }]);
  });

  it("has none of those among the others", () => {
    const { pick } = openCase(2);
    const alone = item(1, alonePriority);
    const [first, second] = [next(), next()];
    expect(pick([first, alone, second]).map((picked) => picked.item)).toEqual([first, second]);
  });

  it("takes in queue order what has room", () => {
    const { pick } = openCase(3);
    const slice = item(100, sharingPriority);
    const other = item(64, sharingPriority);
    expect(pick([slice, other, next()]).map(({ processAmount }) => processAmount)).toEqual([
      100, 28,
    ]);
  });
});
