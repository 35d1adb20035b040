import { expect, it } from "vitest";
import type { JsonObject } from "../../src/conversation/conversation.ts";
import { ask, openTinyEngine, type Question, type TinyEngine } from "./ask.ts";

const patienceMs = 30_000;

/** Text and arguments of one answer. */
async function hear(engine: TinyEngine, parameters: JsonObject, question: Question) {
  const tools = [{ name: "act", description: null, parameters }];
  const toolChoice = { type: "required" } as const;
  const recording = ask(engine.deployment, { tools, toolChoice, ...question });
  expect((await recording.ended).type).toBe("finished");
  const events = recording.batches.flat();
  const written = events
    .map((event) => (event.type === "tool-call-delta" ? event.arguments : ""))
    .join("");
  return { text: recording.text, written, calls: events.map(({ type }) => type) };
}

it(
  "a model without a chat template takes no tools, and the log says so",
  async () => {
    await using engine = await openTinyEngine({}, { chatTemplate: null });
    expect(engine.deployment.describe().takesTools).toBe(false);
    const { calls, text } = await hear(engine, { type: "object" }, { outputTokensMax: 4 });
    expect(text).not.toBe("");
    expect(calls).not.toContain("tool-call-start");
    const warning = engine.lines.find(({ event }) => event === "model warning");
    expect(JSON.stringify(warning)).toContain("no chat template");
  },
  patienceMs,
);

it(
  "no penalty touches the arguments of a call",
  async () => {
    await using engine = await openTinyEngine();
    const parameters: JsonObject = {
      type: "object",
      properties: { list: { type: "array", items: { enum: ["a", "b"] }, minItems: 12 } },
      required: ["list"],
    };
    const question = { outputTokensMax: 100 };
    const options = { temperature: 0, presencePenalty: 2, frequencyPenalty: 2 };
    const plain = await hear(engine, parameters, { ...question, options: { temperature: 0 } });
    expect(plain.written.length).toBeGreaterThan(40);
    const penalized = await hear(engine, parameters, { ...question, options });
    expect(penalized.written).toBe(plain.written);
  },
  patienceMs,
);
