import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { OpenaiCompatibleSettings } from "../../../src/deployment/openai-compatible/openai-deployment.ts";
import {
  type ScriptedDeployment,
  startScriptedDeployment,
  statusAnswer,
} from "../../doubles/scripted-deployment.ts";
import { record } from "../recording-sink.ts";
import { openDeployment } from "./open-deployment.ts";

const never = new AbortController().signal;
const prompt = { bytes: new TextEncoder().encode('{"messages":[]') };

async function found(engine: ScriptedDeployment, settings?: Partial<OpenaiCompatibleSettings>) {
  await using deployment = openDeployment(engine.url, settings);
  await deployment.whenReady(never);
  const { dialect, takesEffort } = deployment.promptSettings();
  return { ...deployment.describe(), dialect, takesEffort };
}

function models(owner: string, rest: object = {}): { readonly body: object } {
  return { body: { object: "list", data: [{ id: "the-model", owned_by: owner, ...rest }] } };
}

describe("a deployment says what it is", () => {
  test("vLLM and SGLang by their list of models", async () => {
    for (const dialect of ["vllm", "sglang"]) {
      await using engine = await startScriptedDeployment({
        ownedBy: dialect,
        contextTokens: 40_960,
      });
      expect(await found(engine)).toEqual({
        ready: true,
        model: "scripted-model",
        contextTokens: 40_960,
        takesTools: true,
        takesEffort: true,
        dialect,
      });
    }
  });

  test("llama.cpp, whose slots may have less context than the model was trained for", async () => {
    await using engine = await startScriptedDeployment();
    const meta = { n_ctx_train: 131_072, n_params: 4_000_000_000 };
    engine.route("GET", "/v1/models", models("llamacpp", { meta }));
    expect(await found(engine)).toMatchObject({ dialect: "llama-cpp", contextTokens: 131_072 });
    const settings = { default_generation_settings: { n_ctx: 8192 }, total_slots: 4 };
    engine.route("GET", "/props", { body: settings });
    expect(await found(engine)).toMatchObject({ dialect: "llama-cpp", contextTokens: 8192 });
    engine.route("GET", "/v1/models", models("someone"));
    expect(await found(engine)).toMatchObject({ dialect: "llama-cpp", contextTokens: 8192 });
  });

  test("llama.cpp, whose template may have no place for tools", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/v1/models", models("llamacpp"));
    const props = (supports: boolean): { readonly body: object } => ({
      body: { chat_template_caps: { supports_tools: supports, supports_tool_calls: supports } },
    });
    engine.route("GET", "/props", props(false));
    expect(await found(engine)).toMatchObject({ dialect: "llama-cpp", takesTools: false });
    engine.route("GET", "/props", props(true));
    expect(await found(engine)).toMatchObject({ dialect: "llama-cpp", takesTools: true });
  });

  test("Ollama, whose context is what runs, else what is configured, else what the model takes", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/v1/models", models("library"));
    engine.route("GET", "/api/version", { body: { version: "0.20.1" } });
    expect(await found(engine)).toMatchObject({ dialect: "ollama", contextTokens: null });
    const shown = { model_info: { "qwen3.context_length": 40_960 }, capabilities: ["completion"] };
    engine.route("POST", "/api/show", { body: shown });
    expect(await found(engine)).toMatchObject({
      contextTokens: 40_960,
      takesTools: false,
      takesEffort: false,
    });
    const configured = {
      ...shown,
      parameters: "temperature 0.6\nnum_ctx        16384",
      capabilities: ["tools", "thinking"],
    };
    engine.route("POST", "/api/show", { body: configured });
    expect(await found(engine)).toMatchObject({
      contextTokens: 16_384,
      takesTools: true,
      takesEffort: "none",
    });
    // The one family for which its source takes an effort that is a word.
    const harmony = { ...configured, details: { family: "gptoss" } };
    engine.route("POST", "/api/show", { body: harmony });
    expect(await found(engine)).toMatchObject({ takesTools: true, takesEffort: true });
    engine.route("POST", "/api/show", { body: configured });
    engine.route("GET", "/api/ps", {
      body: { models: [{ name: "the-model", context_length: 4096 }] },
    });
    expect(await found(engine)).toMatchObject({ contextTokens: 4096 });
  });

  test("SGLang and vLLM behind a list of models that someone else signed", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/v1/models", models("acme", { max_model_len: 2048 }));
    engine.route("GET", "/version", { body: { version: "0.12.0" } });
    expect(await found(engine)).toMatchObject({ dialect: "vllm", contextTokens: 2048 });
    engine.route("GET", "/get_model_info", { body: { model_path: "x/y" } });
    expect(await found(engine)).toMatchObject({ dialect: "sglang", contextTokens: 2048 });
  });

  test("anything else is generic, with the context where it is listed", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/v1/models", models("acme"));
    expect(await found(engine)).toMatchObject({ dialect: "generic", contextTokens: null });
    engine.route("GET", "/v1/models", models("acme", { context_length: 128_000 }));
    expect(await found(engine)).toMatchObject({ dialect: "generic", contextTokens: 128_000 });
    engine.route("GET", "/v1/models", models("acme", { context_length: -5, max_model_len: "9" }));
    expect(await found(engine)).toMatchObject({ contextTokens: null });
  });

  test("and the operator's word goes before it", async () => {
    await using engine = await startScriptedDeployment({ contextTokens: 4096 });
    const settings = { model: "other", contextTokens: 777, dialect: "ollama" } as const;
    expect(await found(engine, settings)).toMatchObject({
      model: "other",
      contextTokens: 777,
      dialect: "ollama",
    });
  });
});

test("the entry of the model that is set gives the context, not the first", async () => {
  await using engine = await startScriptedDeployment();
  const data = [
    { id: "small", owned_by: "vllm", max_model_len: 10 },
    { id: "large", owned_by: "vllm", max_model_len: 20 },
  ];
  engine.route("GET", "/v1/models", { body: { data } });
  expect(await found(engine)).toMatchObject({ model: "small", contextTokens: 10 });
  expect(await found(engine, { model: "large" })).toMatchObject({
    model: "large",
    contextTokens: 20,
  });
});

test("a deployment that lists nothing serves the model that is set", async () => {
  await using engine = await startScriptedDeployment();
  engine.route("GET", "/v1/models", { status: 404, body: {} });
  expect(await found(engine, { model: "m" })).toMatchObject({ ready: true, model: "m" });
});

test("a deployment that comes up late is found, and generations before that are told to come again", async () => {
  await using engine = await startScriptedDeployment();
  engine.route("GET", "/v1/models", (asked) =>
    asked < 3 ? { status: 503, body: { error: { message: "Loading model" } } } : models("vllm"),
  );
  const told: string[] = [];
  await using deployment = openDeployment(
    engine.url,
    {},
    { onLifecycle: (event, fields) => told.push(`${event} ${JSON.stringify(fields)}`) },
  );
  expect(deployment.describe()).toMatchObject({ ready: false, model: "" });
  expect(await record(deployment, prompt).ended).toMatchObject({
    failure: { code: "overloaded", facts: { retryAfterSeconds: 5 } },
  });
  await deployment.whenReady(never);
  expect(deployment.describe()).toMatchObject({ ready: true, model: "the-model" });
  expect(await record(deployment, prompt).ended).toMatchObject({ type: "finished" });
  expect(told.map((line) => line.split(" {")[0])).toEqual([
    "deployment not found",
    "deployment found",
  ]);
});

test("a model that is set is tried once the deployment had its chance to say what it is", async () => {
  await using engine = await startScriptedDeployment();
  engine.route("GET", "/v1/models", { status: 500, body: {} });
  await using deployment = openDeployment(engine.url, { model: "m" });
  expect(deployment.describe().ready).toBe(false);
  await deployment.whenReady(never);
  expect(deployment.describe()).toMatchObject({ ready: true, model: "m" });
  expect(await record(deployment, prompt).ended).toMatchObject({ type: "finished" });
});

test("waiting for a deployment ends when the caller leaves", async () => {
  const engine = await startScriptedDeployment();
  const { url } = engine;
  await engine[Symbol.asyncDispose]();
  await using deployment = openDeployment(url);
  const caller = new AbortController();
  const waiting = deployment.whenReady(caller.signal);
  caller.abort();
  await expect(waiting).rejects.toMatchObject({ code: "overloaded" });
});

test("another model in the place of the first is found after a 404", async () => {
  await using engine = await startScriptedDeployment({ model: "first" });
  await using deployment = openDeployment(engine.url);
  await deployment.whenReady(never);
  engine.route("GET", "/v1/models", models("vllm"));
  engine.answerNext(
    ...statusAnswer(404, { error: { message: "The model `first` does not exist." } }),
  );
  expect(await record(deployment, prompt).ended).toMatchObject({
    failure: { code: "deployment_failed" },
  });
  await expect.poll(() => deployment.describe().model).toBe("the-model");
  expect(await record(deployment, prompt).ended).toMatchObject({ type: "finished" });
  expect(engine.requests[1]?.json).toMatchObject({ model: "the-model" });
});

describe("a check", () => {
  test("passes while the deployment answers, and says what is wrong when it does not", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = openDeployment(engine.url);
    await deployment.check(never);
    await deployment.whenReady(never);
    await deployment.check(never);
    engine.route("GET", "/v1/models", { status: 401, body: {} });
    await expect(deployment.check(never)).rejects.toMatchObject({ code: "deployment_failed" });
    engine.route("GET", "/v1/models", { status: 503, body: {} });
    await expect(deployment.check(never)).rejects.toMatchObject({ code: "overloaded" });
  });

  test("finds a deployment that was not there before", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/v1/models", (asked) =>
      asked < 2 ? { status: 503, body: {} } : models("vllm"),
    );
    await using deployment = openDeployment(engine.url);
    await expect.poll(() => engine.otherRequests.length).toBeGreaterThan(0);
    await deployment.check(never);
    expect(deployment.describe().ready).toBe(true);
  });

  test("ends with its signal, and a deployment with its disposal, also where nothing answers", async () => {
    const silent = createServer(() => undefined);
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    {
      const reached = once(silent, "connection");
      // A TLS handshake that is never answered.
      await using deployment = openDeployment(`https://127.0.0.1:${port}`, {
        connectMs: 3_600_000,
      });
      const caller = new AbortController();
      const checked = deployment.check(caller.signal);
      void reached.then(() => caller.abort());
      await expect(checked).rejects.toMatchObject({ code: "overloaded" });
    }
    silent.close();
  });

  test("ends with a signal that was aborted before", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = openDeployment(engine.url);
    await deployment.whenReady(never);
    await expect(deployment.check(AbortSignal.abort())).rejects.toMatchObject({
      code: "overloaded",
    });
  });
});
