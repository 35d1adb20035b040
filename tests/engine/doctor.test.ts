import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeTinyModel } from "../../engine/tests/make-tiny-model.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";

inspectWith(openAnswerCheck);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-doctor-engine-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
}

/** What doctor finds with the weights given. Its own limit on time is far away: what ends the waiting is what it sees. */
async function examine(weights: string): Promise<readonly Check[]> {
  const run = openRecordingShell(folder, {
    TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
    TRIBUTARY_MODEL: weights,
  });
  const { stdout } = await run("doctor", "--json", "--timeout", "600");
  return (JSON.parse(stdout) as { readonly checks: readonly Check[] }).checks;
}

describe("doctor and the embedded engine", () => {
  it("says what the engine runs on, and its tokens per second", async () => {
    const weights = join(folder, "tiny.gguf");
    writeTinyModel(weights);
    const checks = await examine(weights);
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    const engine = checks.at(-1);
    expect(engine?.name).toBe("engine");
    expect(engine?.message).toMatch(
      /^on the (?:processor with \d+ threads?|GPU) .+, llama\.cpp \S+, (?:prebuilt|localBuild), \d slots, loaded in [\d.]+ s; [\d.]+ tokens per second over \d+ tokens$/,
    );
    const speed = Number(/([\d.]+) tokens per second/.exec(engine?.message ?? "")?.[1]);
    expect(speed).toBeGreaterThan(1);
  });

  it("says why the engine is not there, and stops waiting when it keeps failing", async () => {
    const weights = join(folder, "broken.gguf");
    writeFileSync(weights, `GGUF${"x".repeat(500)}`);
    const last = (await examine(weights)).at(-1);
    expect(last).toMatchObject({ name: "deployment", ok: false });
    expect(last?.message).toMatch(/not ready: .+ \(.+\)$/s);
  });
});
