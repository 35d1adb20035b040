import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tool } from "../../src/conversation/conversation.ts";
import type { EmbeddedDeployment } from "../../src/deployment/embedded/embedded-deployment.ts";
import { ask, openEmbedded, until, type LifecycleLine } from "../engine/ask.ts";
import { makeParametersCases } from "../../engine/tests/schema-arbitrary.ts";

/** Of about every tenth the model writes more than it may here, and nothing comes of it: enough of them for 200 that end. */
const schemaCount = 250;
const wholeMin = 200;
/** Longer ones tell nothing new of the vocabulary, and the prompt is what takes time. */
const schemaCharactersMax = 170;
/** Tools of one prompt, which is evaluated once and known for the calls that follow. */
const toolsAPrompt = 10;
const outputTokensMax = 40;

function makeTools(): readonly Tool[] {
  return fc
    .sample(makeParametersCases(1), { numRuns: schemaCount * 6, seed: 11 })
    .map(({ schema }) => schema)
    .filter((schema) => JSON.stringify(schema).length < schemaCharactersMax)
    .slice(0, schemaCount)
    .map((parameters, index) => ({ name: `t${String(index)}`, description: null, parameters }));
}

describe("tool calls of the default model", () => {
  let folder = "";
  let deployment: EmbeddedDeployment;
  const lines: LifecycleLine[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tool-schemas-"));
    const settings = { dataDir: folder, model: null, slots: 4, environment: process.env };
    deployment = await openEmbedded(settings, lines);
    await until(() => deployment.describe().ready, 120_000);
  });

  afterAll(async () => {
    await deployment[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function call(tools: readonly Tool[], tool: Tool) {
    const recording = ask(deployment, {
      user: "Go.",
      tools,
      toolChoice: { type: "tool", name: tool.name },
      outputTokensMax,
      options: { temperature: 1 },
    });
    const ending = await recording.ended;
    const written = recording.batches
      .flat()
      .map((event) => (event.type === "tool-call-delta" ? event.arguments : ""))
      .join("");
    return { tool, ending, written };
  }

  it("satisfy random schemas, whatever it writes", async () => {
    const ajv = new Ajv2020({ strict: false });
    const tools = makeTools();
    expect(tools).toHaveLength(schemaCount);
    const prompts = Array.from({ length: schemaCount / toolsAPrompt }, (_, index) =>
      tools.slice(index * toolsAPrompt, (index + 1) * toolsAPrompt),
    );
    let whole = 0;
    const callAll = async (): Promise<void> => {
      for (let some = prompts.shift(); some !== undefined; some = prompts.shift()) {
        for (const tool of some) {
          const { ending, written } = await call(some, tool);
          if (ending.type === "finished" && ending.finish.reason === "length") continue;
          expect(ending).toMatchObject({ type: "finished", finish: { reason: "tool-calls" } });
          const schema = tool.parameters ?? {};
          const valid = ajv.validate(schema, JSON.parse(written));
          expect([schema, written, valid, ajv.errors]).toEqual([schema, written, true, null]);
          whole += 1;
        }
      }
    };
    await Promise.all([1, 2, 3, 4].map(callAll));
    console.log(`${String(whole)} of ${String(schemaCount)} within the allowance`);
    expect(lines.filter(({ event }) => event === "model warning")).toEqual([]);
    expect(whole).toBeGreaterThanOrEqual(wholeMin);
  });

  it("have characters whose bytes its vocabulary lacks", async () => {
    const text = "a \u{40000}";
    const tool: Tool = {
      name: "write",
      description: null,
      parameters: {
        type: "object",
        properties: { [text]: { enum: [text] } },
        required: [text],
        additionalProperties: false,
      },
    };
    const { ending, written } = await call([tool], tool);
    expect(ending).toMatchObject({ type: "finished", finish: { reason: "tool-calls" } });
    expect(JSON.parse(written)).toEqual({ [text]: text });
  });
});
