import { describe, expect, it } from "vitest";
import { formats } from "../service/start-service.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { type Answered, askService } from "./answers.ts";
import { type EngineProcess, openEngineProcess } from "./engine.ts";
import { describeEngine } from "./engine-laws.ts";
import { llamaCppNeeds } from "./install/llama-cpp.ts";
import { missingPrograms } from "./install/needed-programs.ts";
import { serve } from "./served.ts";
import { openSmg, smgCannot } from "./smg.ts";

describeEngine({
  name: "SGLang's router before llama.cpp",
  needs: llamaCppNeeds,
  cannot: smgCannot,
  open: openSmg,
});

const lacks = missingPrograms(llamaCppNeeds).length > 0;

async function startRouter(): Promise<EngineProcess> {
  const engine = await openSmg();
  const router = await openEngineProcess(engine, { template: engine.templates.calls });
  await router.start();
  return router;
}

describe.skipIf(lacks)("a router", () => {
  it("whose worker's dialect is set is asked in that dialect", async () => {
    await using router = await startRouter();
    await using service = await serve(router.origin, { TRIBUTARY_DEPLOYMENT_DIALECT: "llama-cpp" });
    const parameters = {
      type: "object",
      properties: { city: { enum: ["Rome"] } },
      required: ["city"],
    };
    const weather = { name: "weather", description: "Tells the weather of a city.", parameters };
    const tools = [{ type: "function", function: weather }];
    const broken = { name: "weather", arguments: '{"city' };
    const messages = [
      { role: "user", content: "The weather?" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: broken }],
      },
      { role: "tool", tool_call_id: "c", content: "error: no such arguments" },
      { role: "user", content: "What will the weather be in Rome?" },
    ];
    const forced = { tool_choice: { type: "function", function: { name: "weather" } } };
    const send = { messages, tools, ...forced };
    const through = await askService(service, "chat-completions", { send, stream: true, max: 200 });
    expect(through, through.raw).toMatchObject({ status: 200, finish: "tool-calls" });
    expect(through.calls[0]).toMatchObject({ name: "weather" });
  });

  it("whose worker dies says so in every format, and serves again when the worker does", async () => {
    await using router = await startRouter();
    await using service = await serve(router.origin);
    const ask = (name: WireFormatName): Promise<Answered> => {
      const messages = [{ role: "user", content: "Hi" }];
      const send = name === "responses" ? { input: "Hi" } : { messages };
      // Whole answers have a status of their own; a stream that waited long is 200 already when it fails.
      return askService(service, name, { send, stream: false });
    };
    await router.behind?.kill();
    for (const { name } of formats) {
      const { status } = await ask(name);
      // The first request finds the worker dead, later ones are told that the router knows it.
      expect([502, name === "messages" ? 529 : 503]).toContain(status);
    }
    await becomes(503, async () => (await ask("chat-completions")).status);
    const away = await ask("chat-completions");
    expect(away).toMatchObject({ status: 503, error: "overloaded", retryAfter: "5" });
    await router.behind?.start();
    await becomes(200, async () => (await ask("chat-completions")).status);
  });
});

async function becomes(status: number, ask: () => Promise<number>): Promise<void> {
  await expect.poll(ask, { timeout: 120_000, interval: 200 }).toBe(status);
}
