import { describe, expect, it } from "vitest";
import { type EngineProcess, openEngineProcess } from "./engine.ts";
import { askEngine, askService } from "./answers.ts";
import { describeEngine } from "./engine-laws.ts";
import { missingPrograms } from "./install/needed-programs.ts";
import { ollamaNeeds } from "./install/ollama.ts";
import { ollamaCannot, openOllama } from "./ollama.ts";
import { formats, type TestService } from "../service/start-service.ts";
import { serve } from "./served.ts";

describeEngine({ name: "Ollama", needs: ollamaNeeds, cannot: ollamaCannot, open: openOllama });

describe.skipIf(missingPrograms(ollamaNeeds).length > 0)("Ollama in its own ways", () => {
  it("a conversation beyond a context of 512 tokens is refused, though the engine cuts it", async () => {
    const { engine, service } = await started({ contextTokens: 512 });
    await using closing = new AsyncDisposableStack();
    closing.use(engine);
    closing.use(service);
    const content = "Every word of this sentence is one that counts. ".repeat(90);
    const messages = [{ role: "user", content }];
    const direct = await askEngine(engine.origin, { messages, max_tokens: 4 });
    expect(direct).toMatchObject({ status: 200, input: 512 });
    for (const { name } of formats)
      for (const stream of [false, true]) {
        const send = name === "responses" ? { input: content } : { messages };
        const through = await askService(service, name, { send, stream, max: 4 });
        const told = name === "messages" ? through.raw : through.error;
        expect(told, `${name} ${String(stream)}`).toMatch(
          name === "messages" ? /prompt is too long/u : /context_length_exceeded/u,
        );
      }
  });

  it("the context that a model was given is known once it is loaded", async () => {
    const ollama = await openOllama();
    await using engine = await openEngineProcess(
      { ...ollama, load: async () => undefined },
      { template: ollama.templates.calls, contextTokens: 1_024 },
    );
    await engine.start();
    await using service = await serve(engine.origin);
    const messages = [{ role: "user", content: "Hi" }];
    const ask = async (): Promise<number | null> => {
      const answer = await askService(service, "messages", { send: { messages }, stream: true });
      expect(answer).toMatchObject({ status: 200, error: null });
      return service.gateway.describe().contextTokens;
    };
    await expect.poll(ask, { timeout: 60_000, interval: 500 }).toBe(1_024);
  });

  it("a model that thinks does so in every format, and takes an effort", async () => {
    const ollama = await openOllama();
    const { engine, service } = await started({ template: ollama.templates.thinks });
    await using closing = new AsyncDisposableStack();
    closing.use(engine);
    closing.use(service);
    const content = "Is 7 a prime number?";
    for (const { name } of formats)
      for (const stream of [false, true]) {
        const effort =
          name === "responses"
            ? { reasoning: { effort: "low" } }
            : name === "messages"
              ? {}
              : { reasoning_effort: "low" };
        const send = {
          ...(name === "responses"
            ? { input: content }
            : { messages: [{ role: "user", content }] }),
          ...effort,
        };
        const { error, reasoning, finish } = await askService(service, name, { send, stream });
        expect([error, reasoning === "", finish], `${name} ${String(stream)}`).toEqual([
          null,
          false,
          "length",
        ]);
      }
  });
});

async function started(change: {
  readonly contextTokens?: number;
  readonly template?: string | null;
}): Promise<{ readonly engine: EngineProcess; readonly service: TestService }> {
  const ollama = await openOllama();
  const engine = await openEngineProcess(ollama, { template: ollama.templates.calls, ...change });
  await engine.start();
  return { engine, service: await serve(engine.origin) };
}
