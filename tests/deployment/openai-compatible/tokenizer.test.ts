import { describe, expect, test } from "vitest";
import { limits } from "../../../src/limits.ts";
import { startScriptedDeployment } from "../../doubles/scripted-deployment.ts";
import { openReadyDeployment } from "./open-deployment.ts";

const never = new AbortController().signal;
const prompt = { bytes: new TextEncoder().encode('{"messages":[]') };

describe("an engine's own count of tokens", () => {
  test("is asked from vLLM in one step", async () => {
    await using engine = await startScriptedDeployment({ ownedBy: "vllm" });
    engine.route("POST", "/tokenize", {
      body: { count: 37, max_model_len: 2_048, tokens: [1, 2, 3], token_strs: null },
    });
    await using deployment = await openReadyDeployment(engine.url);
    expect(await deployment.countTokens?.(prompt, never)).toBe(37);
  });

  test("is asked from llama.cpp in two: the template, then the tokens", async () => {
    await using engine = await startScriptedDeployment({ ownedBy: "llamacpp" });
    engine.route("POST", "/apply-template", { body: { prompt: "<|im_start|>user\nhi" } });
    engine.route("POST", "/tokenize", { body: { tokens: [1, 22, 333, 4] } });
    await using deployment = await openReadyDeployment(engine.url);
    expect(await deployment.countTokens?.(prompt, never)).toBe(4);
    engine.route("POST", "/tokenize", { body: { tokens: [] } });
    expect(await deployment.countTokens?.(prompt, never)).toBe(0);
    expect(engine.otherRequests.slice(-4)).toEqual([
      "POST /apply-template",
      "POST /tokenize",
      "POST /apply-template",
      "POST /tokenize",
    ]);
  });

  test.each([
    ["has no such route", { status: 404, body: { detail: "Not Found" } }],
    ["answers something else", { body: { tokens: "many", count: "many" } }],
    ["fails", { status: 500, body: {} }],
  ])("is nothing where the engine %s", async (_case, answer) => {
    for (const ownedBy of ["vllm", "llamacpp"]) {
      await using engine = await startScriptedDeployment({ ownedBy });
      engine.route("POST", "/apply-template", { body: { prompt: "hi" } });
      engine.route("POST", "/tokenize", answer);
      await using deployment = await openReadyDeployment(engine.url);
      expect(await deployment.countTokens?.(prompt, never)).toBeNull();
    }
  });

  test("is not asked from engines that have none, nor for a prompt that is too large", async () => {
    await using sglang = await startScriptedDeployment({ ownedBy: "sglang" });
    await using without = await openReadyDeployment(sglang.url);
    expect(await without.countTokens?.(prompt, never)).toBeNull();
    await using engine = await startScriptedDeployment({ ownedBy: "vllm" });
    engine.route("POST", "/tokenize", { body: { count: 37 } });
    await using deployment = await openReadyDeployment(engine.url);
    const large = { bytes: new Uint8Array(limits.countTokensAskBytesMax + 1) };
    expect(await deployment.countTokens?.(large, never)).toBeNull();
    expect([...sglang.otherRequests, ...engine.otherRequests]).not.toContain("POST /tokenize");
  });

  test("ends with its signal, and is asked for few at a time", async () => {
    await using engine = await startScriptedDeployment({ ownedBy: "vllm" });
    await using deployment = await openReadyDeployment(engine.url);
    const asking = new AbortController();
    // A route that nothing answers is a 404; one that is never read hangs until the signal.
    const asked = Array.from({ length: limits.countTokensAsksMax }, async () =>
      deployment.countTokens?.(prompt, asking.signal),
    );
    engine.route("POST", "/tokenize", { body: { count: 37 } });
    expect(await deployment.countTokens?.(prompt, never)).toBeNull();
    asking.abort();
    expect(await Promise.all(asked)).toEqual(asked.map(() => null));
    expect(await deployment.countTokens?.(prompt, never)).toBe(37);
  });
});
