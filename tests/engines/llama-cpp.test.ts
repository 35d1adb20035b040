import { describe, expect, it } from "vitest";
import { formats } from "../service/start-service.ts";
import { askService } from "./answers.ts";
import { openEngineProcess } from "./engine.ts";
import { describeEngine } from "./engine-laws.ts";
import { missingPrograms } from "./install/needed-programs.ts";
import { llamaCppNeeds } from "./install/llama-cpp.ts";
import { openLlamaCpp } from "./llama-cpp.ts";
import { serve } from "./served.ts";

describeEngine({ name: "llama.cpp", needs: llamaCppNeeds, cannot: {}, open: openLlamaCpp });

describe.skipIf(missingPrograms(llamaCppNeeds).length > 0)("llama.cpp with other templates", () => {
  it("says whether the model's own template takes tools", async () => {
    await using engine = await openEngineProcess(await openLlamaCpp());
    await engine.start();
    await using service = await serve(engine.origin);
    expect(service.gateway.describe().takesTools).toBe(false);
  });

  it("reasons where a template makes it, in every format", async () => {
    const llamaCpp = await openLlamaCpp();
    await using engine = await openEngineProcess(llamaCpp, { template: llamaCpp.templates.thinks });
    await engine.start();
    await using service = await serve(engine.origin);
    for (const { name } of formats)
      for (const stream of [false, true]) {
        const content = "Is 7 a prime number?";
        const send =
          name === "responses" ? { input: content } : { messages: [{ role: "user", content }] };
        const { error, finish, reasoning } = await askService(service, name, { send, stream });
        expect([error, reasoning === "", finish], `${name} ${String(stream)}`).toEqual([
          null,
          false,
          "length",
        ]);
      }
  });
});
