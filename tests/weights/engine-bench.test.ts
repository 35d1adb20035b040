import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { benchEngine } from "../../bench/engine.ts";

// Only that it runs, and that its figures can be true: how fast it is depends on the machine.
it("the benchmark of the engine measures all that it prints", async () => {
  const cacheDir = mkdtempSync(join(tmpdir(), "engine-bench-"));
  try {
    const rounds = await benchEngine({ smoke: true, cacheDir });
    expect(rounds).toHaveLength(1);
    for (const value of Object.values(rounds[0] ?? {})) expect(value).toBeGreaterThanOrEqual(0);
    expect(Object.keys(rounds[0] ?? {})).toHaveLength(10);
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});
