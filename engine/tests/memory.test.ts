import { mkdtempSync, truncateSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generalSampling } from "../src/catalog.ts";
import { openEngine } from "../src/engine.ts";
import { findMemoryProblem } from "../src/memory.ts";
import { writeTinyModel } from "./make-tiny-model.ts";

const gibibyte = 2 ** 30;
const patienceMs = 30_000;

describe("a model that does not fit into memory", () => {
  let folder = "";

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "memory-"));
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function refusal(contextTokens: number | null): Promise<string> {
    const order = { slots: 1, threads: 1, sampling: generalSampling, gpu: false, contextTokens };
    const loading = openEngine({ modelFile: join(folder, "tiny.gguf"), ...order }, () => undefined);
    return loading.then(
      () => "it was loaded",
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  }

  it(
    "is refused before it is loaded for its context, with numbers",
    async () => {
      writeTinyModel(join(folder, "tiny.gguf"), { contextTokens: 2_000_000_000 });
      expect(await refusal(2_000_000_000)).toMatch(
        /^the model does not fit into memory: it needs 0\.00 GiB for its weights and [\d.]+ GiB for 2,000,000,000 tokens of context, [\d.]+ GiB are available\. Set TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS to less/,
      );
    },
    patienceMs,
  );

  it(
    "is refused for its weights, without a look inside",
    async () => {
      const path = join(folder, "tiny.gguf");
      writeTinyModel(path);
      // Without blocks on the disk.
      truncateSync(path, 4 * 2 ** 40);
      expect(await refusal(null)).toMatch(
        /it needs 4096\.0 GiB for its weights, [\d.]+ GiB are available\. Use a smaller model/,
      );
    },
    patienceMs,
  );

  it("is told apart from one that fits by what both need together", () => {
    const need = {
      weightsBytes: 3 * gibibyte,
      contextBytes: 2 * gibibyte,
      contextTokens: 8_192,
    };
    expect(findMemoryProblem(need, 5 * gibibyte)).toBeNull();
    expect(findMemoryProblem(need, 4.5 * gibibyte)).toBe(
      "the model does not fit into memory: it needs 3.0 GiB for its weights and 2.0 GiB for 8,192 tokens of context, " +
        "4.5 GiB are available. Set TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS to less, or use a smaller model.",
    );
    expect(findMemoryProblem(need, 2 * gibibyte)).toContain("fewer bits (such as Q4_K_M)");
  });
});
