import { describe, expect, test } from "vitest";
import type { Deployment } from "../../../src/deployment/deployment.ts";
import { limits } from "../../../src/limits.ts";
import {
  finish,
  type ScriptedDeployment,
  startScriptedDeployment,
  statusAnswer,
  textAnswer,
} from "../../doubles/scripted-deployment.ts";
import { record } from "../recording-sink.ts";
import { openReadyDeployment } from "./open-deployment.ts";

const prompt = { bytes: new TextEncoder().encode('{"messages":[]') };

function listed(model: string, contextTokens: number): { readonly body: object } {
  return { body: { data: [{ id: model, owned_by: "vllm", max_model_len: contextTokens }] } };
}

/** A clock that jumps: looks are a second apart, and no test waits for it. */
function openClock(): { readonly now: () => number; pass(ms: number): void } {
  let passedMs = 0;
  return { now: () => Date.now() + passedMs, pass: (ms) => void (passedMs += ms) };
}

async function described(deployment: Deployment, model: string): Promise<number | null> {
  await expect.poll(() => deployment.describe().model).toBe(model);
  return deployment.describe().contextTokens;
}

async function withEngine(
  use: (engine: ScriptedDeployment, deployment: Deployment) => Promise<void>,
): Promise<void> {
  await using engine = await startScriptedDeployment({ model: "first", contextTokens: 4_096 });
  const clock = openClock();
  await using deployment = await openReadyDeployment(engine.url, {}, { now: clock.now });
  engine.route("GET", "/v1/models", listed("second", 2_048));
  clock.pass(limits.deploymentLookMsMin);
  await use(engine, deployment);
}

describe("another engine in the place of the first is seen", () => {
  test("after a connection that was lost", () =>
    withEngine(async (engine, deployment) => {
      engine.answerNext({ type: "reset" });
      await record(deployment, prompt).ended;
      expect(await described(deployment, "second")).toBe(2_048);
    }));

  test("after a 503, as one that loads answers", () =>
    withEngine(async (engine, deployment) => {
      const loading = { error: { message: "Loading model", type: "unavailable_error", code: 503 } };
      engine.answerNext(...statusAnswer(503, loading));
      await record(deployment, prompt).ended;
      expect(await described(deployment, "second")).toBe(2_048);
    }));

  test("after words about another context length", () =>
    withEngine(async (engine, deployment) => {
      const message =
        "max_tokens=6144 cannot be greater than max_model_len=2048. Please request fewer output tokens. (parameter=max_tokens, value=6144)";
      engine.answerNext(...statusAnswer(400, { error: { message, param: "max_tokens" } }));
      await record(deployment, prompt).ended;
      expect(await described(deployment, "second")).toBe(2_048);
    }));

  test("after a while, also where nothing was lost", async () => {
    await using engine = await startScriptedDeployment({ model: "first" });
    const clock = openClock();
    await using deployment = await openReadyDeployment(engine.url, {}, { now: clock.now });
    engine.route("GET", "/v1/models", listed("second", 2_048));
    await record(deployment, prompt).ended;
    expect(engine.otherRequests).toHaveLength(1);
    clock.pass(limits.deploymentKnownMs);
    await record(deployment, prompt).ended;
    expect(await described(deployment, "second")).toBe(2_048);
  });

  test("and not by a refusal that says nothing of the kind", () =>
    withEngine(async (engine, deployment) => {
      for (const status of [400, 429, 500]) {
        engine.answerNext(...statusAnswer(status, { error: { message: "no" } }));
        await record(deployment, prompt).ended;
      }
      expect(engine.otherRequests).toHaveLength(1);
    }));

  test("and is told once, however often it is looked for", async () => {
    await using engine = await startScriptedDeployment({ model: "first" });
    const clock = openClock();
    const told: string[] = [];
    const onLifecycle = (event: string): void => void told.push(event);
    const parts = { now: clock.now, onLifecycle };
    await using deployment = await openReadyDeployment(engine.url, {}, parts);
    for (const looks of [2, 3]) {
      clock.pass(limits.deploymentKnownMs);
      await record(deployment, prompt).ended;
      await expect.poll(() => engine.otherRequests.length).toBeGreaterThanOrEqual(looks);
    }
    expect(told).toEqual(["deployment found"]);
  });
});

describe("an engine that cuts long conversations instead of refusing them", () => {
  const settings = { dialect: "ollama", contextTokens: 512 } as const;

  test("is not sent one that cannot fit", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url, settings);
    const long = { bytes: new TextEncoder().encode(`{"messages":["${"x".repeat(4 * 512)}"]`) };
    expect(await record(deployment, long).ended).toMatchObject({
      type: "failed",
      failure: { code: "input_too_large", facts: { tokens: { maximum: 512 } } },
    });
    expect(engine.requests).toHaveLength(0);
  });

  test("fails where its usage shows that it cut", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url, settings);
    // Ollama's log: truncating input prompt limit=512 prompt=916 keep=4 new=512
    const usage = { promptTokens: 512, completionTokens: 1 };
    engine.answerNext(...textAnswer("The", { usage }));
    expect(await record(deployment, prompt).ended).toMatchObject({
      type: "failed",
      failure: { code: "input_too_large", facts: { tokens: { sent: 513, maximum: 512 } } },
    });
    engine.answerNext(...textAnswer("The", { usage: { promptTokens: 511, completionTokens: 1 } }));
    expect(await record(deployment, prompt).ended).toMatchObject({ type: "finished" });
  });

  test("is what only some engines are", async () => {
    await using engine = await startScriptedDeployment();
    const vllm = { ...settings, dialect: "vllm" } as const;
    await using deployment = await openReadyDeployment(engine.url, vllm);
    const usage = { promptTokens: 512, completionTokens: 1 };
    engine.answerNext(...textAnswer("The", { usage }), finish("length"));
    expect(await record(deployment, prompt).ended).toMatchObject({ type: "finished" });
  });
});

describe("an engine that tells its context only while the model is loaded", () => {
  const models = { data: [{ id: "the-model", owned_by: "library" }] };
  const running = (contextTokens: number): { readonly body: object } => ({
    body: { models: [{ name: "the-model", context_length: contextTokens }] },
  });
  const idle = { body: { models: [] } };

  test("is asked again after an answer, and keeps what it told while the model is unloaded", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/v1/models", { body: models });
    engine.route("GET", "/api/version", { body: { version: "0.17.4" } });
    engine.route("POST", "/api/show", { body: { model_info: { "llama.context_length": 8_192 } } });
    engine.route("GET", "/api/ps", idle);
    const clock = openClock();
    const told: unknown[] = [];
    const onLifecycle = (_event: string, facts: Readonly<Record<string, unknown>>): void =>
      void told.push(facts["contextTokens"]);
    const parts = { now: clock.now, onLifecycle };
    await using deployment = await openReadyDeployment(engine.url, {}, parts);
    const answerAfter = async (ms: number): Promise<void> => {
      const asked = showsOf(engine);
      clock.pass(ms);
      // An answer does not begin a look while another is under way.
      do await record(deployment, prompt).ended;
      while (showsOf(engine) === asked);
    };
    engine.route("GET", "/api/ps", running(2_048));
    await answerAfter(limits.deploymentLookMsMin);
    await expect.poll(() => deployment.describe().contextTokens).toBe(2_048);
    engine.route("GET", "/api/ps", idle);
    await answerAfter(limits.deploymentKnownMs);
    engine.route("GET", "/api/ps", running(1_024));
    await answerAfter(limits.deploymentLookMsMin);
    await expect.poll(() => deployment.describe().contextTokens).toBe(1_024);
    expect(told).toEqual([8_192, 2_048, 1_024]);
  });
});

function showsOf({ otherRequests }: ScriptedDeployment): number {
  return otherRequests.filter((request) => request === "POST /api/show").length;
}
