import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject, Tool, Turn } from "../../src/conversation/conversation.ts";
import { ask, counts, openTinyEngine, until, type Question, type TinyEngine } from "./ask.ts";
import { makeParametersCases } from "../../engine/tests/schema-arbitrary.ts";

const patienceMs = 30_000;

function tool(name: string, parameters: JsonObject | null = null): Tool {
  return { name, description: `does ${name}`, parameters };
}

const city = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] }, days: { type: "integer" } },
  required: ["city", "days"],
} as const;

/** A template that knows tools, as Qwen's does. */
const toolTemplate = `{% if tools %}{{ '<|im_start|>system\\n' }}{% if messages[0].role == 'system' %}{{ messages[0].content + '\\n\\n' }}{% endif %}{{ 'TOOLS:' }}{% for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}{{ '<|im_end|>\\n' }}{% elif messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{% endif %}{% for message in messages %}{% if message.role == 'user' or (message.role == 'system' and not loop.first) %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% elif message.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}{% if message.content %}{{ message.content }}{% endif %}{% if message.tool_calls %}{% for call in message.tool_calls %}{{ '\\n<call>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</call>' }}{% endfor %}{% endif %}{{ '<|im_end|>\\n' }}{% elif message.role == 'tool' %}{{ '<|im_start|>user\\n<result>' + message.content + '</result><|im_end|>\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;

/** What one answer said, in order: texts, and calls as name and arguments. */
async function hear(engine: TinyEngine, question: Question) {
  const recording = ask(engine.deployment, question);
  const ending = await recording.ended;
  if (ending.type === "failed") throw ending.failure;
  if (ending.type !== "finished") throw new Error(ending.type);
  let said = "";
  let name = "";
  const ids: string[] = [];
  for (const event of recording.batches.flat()) {
    if (event.type === "tool-call-start") {
      name = event.name;
      ids.push(event.id);
      said += `[${name}]`;
    } else if (event.type === "tool-call-delta") said += event.arguments;
    else if (event.type === "reasoning-start") said += "(";
    else if (event.type === "reasoning-end") said += ")";
    else if (event.type === "text-delta" || event.type === "reasoning-delta") said += event.text;
  }
  return { said, name, ids, reason: ending.finish.reason, usage: ending.usage, recording };
}

describe("a call that is forced", () => {
  let engine: TinyEngine;

  beforeAll(async () => {
    const contextTokens = 16_384;
    engine = await openTinyEngine({ contextTokens, slots: 4 }, { contextTokens, closing: true });
  }, patienceMs);

  afterAll(() => engine[Symbol.asyncDispose]());

  it("satisfies 200 schemas of every kind, by a model that knows nothing", async () => {
    const ajv = new Ajv2020({ strict: false });
    const schemas = fc
      .sample(makeParametersCases(3), { numRuns: 200, seed: 4 })
      .map(({ schema }) => schema);
    let complete = 0;
    const one = async (schema: JsonObject, seed: number): Promise<void> => {
      const { reason, said } = await hear(engine, {
        tools: [tool("act", schema)],
        toolChoice: { type: "tool", name: "act" },
        outputTokensMax: 1_500,
        options: { seed, temperature: 1, topP: 1, topK: 0 },
      });
      expect(said.startsWith("[act]{")).toBe(true);
      // Lists and texts without a bound may go on for as long as chance has it.
      if (reason === "length") return;
      expect(reason).toBe("tool-calls");
      const valid = ajv.validate(schema, JSON.parse(said.slice("[act]".length)));
      expect([schema, said, valid, ajv.errors]).toEqual([schema, said, true, null]);
      complete += 1;
    };
    for (let start = 0; start < schemas.length; start += 8) {
      const some = schemas.slice(start, start + 8);
      await Promise.all(some.map((schema, index) => one(schema, start + index)));
    }
    expect(complete).toBeGreaterThanOrEqual(195);
  }, 60_000);

  it(
    "is of one of the tools where any is required, and streams",
    async () => {
      const tools = ["get", "get_all", "set"].map((name) => tool(name, city));
      const names = new Set<string>();
      for (let seed = 0; seed < 12; seed += 1) {
        const { ids, name, reason, said } = await hear(engine, {
          tools,
          toolChoice: { type: "required" },
          outputTokensMax: 300,
          options: { seed, temperature: 2 },
        });
        names.add(name);
        expect(said).toMatch(
          /^\[(get|get_all|set)\]\{ ?"city": ?"(Rome|Oslo)", ?"days": ?-?\d+ ?\}$/u,
        );
        expect(reason).toBe("tool-calls");
        expect(ids).toEqual([expect.stringMatching(/^call_[0-9a-f]{24}$/u)]);
      }
      expect(names.size).toBeGreaterThan(1);
    },
    patienceMs,
  );

  it(
    "is cut by the allowance, which says so, and never exceeded",
    async () => {
      for (const outputTokensMax of [3, 5, 20]) {
        const { reason, recording, said, usage } = await hear(engine, {
          tools: [
            tool("act", {
              type: "object",
              properties: { s: { const: "x".repeat(90) } },
              required: ["s"],
            }),
          ],
          toolChoice: { type: "required" },
          outputTokensMax,
        });
        expect(reason).toBe("length");
        expect(usage?.outputTokens).toBe(outputTokensMax);
        expect(said.startsWith("[act]{")).toBe(true);
        expect(recording.batches.flat().at(-1)).toEqual({ type: "tool-call-end" });
      }
    },
    patienceMs,
  );

  it(
    "ends one step after a cancel",
    async () => {
      const recording = ask(engine.deployment, {
        tools: [
          tool("act", {
            type: "object",
            properties: { s: { const: "x".repeat(4_000) } },
            required: ["s"],
          }),
        ],
        toolChoice: { type: "required" },
        outputTokensMax: 5_000,
      });
      await recording.begun;
      recording.generation.cancel();
      const atCancel = await counts(engine.deployment);
      expect(await recording.ended).toEqual({ type: "cancelled" });
      await until(async () => (await counts(engine.deployment)).running === 0);
      expect((await counts(engine.deployment)).steps - atCancel.steps).toBeLessThanOrEqual(1);
    },
    patienceMs,
  );

  it("is not ended by a stop sequence inside its arguments", async () => {
    const { reason, said } = await hear(engine, {
      tools: [
        tool("act", { type: "object", properties: { s: { const: "aaSTOPaa" } }, required: ["s"] }),
      ],
      toolChoice: { type: "tool", name: "act" },
      outputTokensMax: 100,
      options: { stopSequences: ["STOP"], temperature: 0 },
    });
    expect(said.replaceAll(" ", "")).toBe('[act]{"s":"aaSTOPaa"}');
    expect(reason).toBe("tool-calls");
  });

  it("is any object, and warned of, where the schema cannot be followed", async () => {
    const { reason, said } = await hear(engine, {
      tools: [tool("odd", { type: "array", items: { type: "string" } })],
      toolChoice: { type: "required" },
      outputTokensMax: 2_000,
      options: { seed: 5, temperature: 1 },
    });
    if (reason !== "length") expect(typeof JSON.parse(said.slice("[odd]".length))).toBe("object");
    await until(() =>
      engine.lines.some(({ fields }) => String(fields["text"]).includes("tool odd")),
    );
  });

  it("is not made where no tool may be called", async () => {
    const { said } = await hear(engine, {
      tools: [tool("act")],
      toolChoice: { type: "none" },
      outputTokensMax: 4,
    });
    expect(said).toBe("0123");
  });
});

describe("a call that the model makes by itself", () => {
  it.each([
    ["in many tokens", ["Let me see", ".\n<tool", "_ca", "ll>"], "Let me see."],
    ["with the marker inside a token", ["<tool_call>\n{"], ""],
    ["with something else behind the marker", ["Hm", "<tool_call> now"], "Hm"],
  ])(
    "is taken over by the grammar: %s",
    async (_name, script, text) => {
      await using engine = await openTinyEngine({}, { script, closing: true });
      const { reason, said, usage } = await hear(engine, {
        tools: [tool("weather", city), tool("other", city)],
        outputTokensMax: 400,
        options: { temperature: 1, seed: 1 },
      });
      expect(said.slice(0, text.length)).toBe(text);
      expect(said.slice(text.length)).toMatch(/^\[(weather|other)\]\{.*\}$/u);
      expect(reason).toBe("tool-calls");
      // What was written in its name counts.
      expect(usage?.outputTokens).toBeGreaterThan(script.length + 20);
    },
    patienceMs,
  );

  it(
    "goes before JSON that was asked for",
    async () => {
      await using engine = await openTinyEngine({}, { script: ["<tool_", "call>"], closing: true });
      const { reason, said } = await hear(engine, {
        tools: [tool("weather", city)],
        outputTokensMax: 400,
        options: { responseFormat: "json-object", temperature: 1, seed: 1 },
      });
      expect(said.startsWith("[weather]{")).toBe(true);
      expect(reason).toBe("tool-calls");
    },
    patienceMs,
  );

  it(
    "does not begin where the allowance has no room for it, and shows nothing of it",
    async () => {
      await using engine = await openTinyEngine({}, { script: ["Hm ", "<tool_", "call>"] });
      for (const outputTokensMax of [2, 3, 4, 10]) {
        const { reason, said, usage } = await hear(engine, {
          tools: [tool("act")],
          outputTokensMax,
        });
        expect([said, reason]).toEqual(["Hm", "length"]);
        expect(usage?.outputTokens).toBeLessThanOrEqual(outputTokensMax);
      }
    },
    patienceMs,
  );
});

describe("a template that knows tools", () => {
  it(
    "offers them in its own way, and is fed what came back",
    async () => {
      await using engine = await openTinyEngine(
        {},
        { chatTemplate: toolTemplate, script: ["<ca", "ll>\n{"], closing: true },
      );
      const tools = [tool("weather", city)];
      const first = await hear(engine, { tools, outputTokensMax: 300, options: { seed: 3 } });
      expect(first.said.startsWith("[weather]{")).toBe(true);
      expect(first.reason).toBe("tool-calls");
      const turns = [
        { role: "user", text: "hi" },
        {
          role: "assistant",
          parts: [
            {
              type: "tool-call",
              id: "c1",
              name: "weather",
              arguments: first.said.slice("[weather]".length),
            },
          ],
        },
        { role: "tool", callId: "c1", text: "sunny" },
      ] as const;
      const second = await hear(engine, {
        tools,
        turns,
        outputTokensMax: 300,
        options: { seed: 3 },
      });
      expect(second.usage?.cachedInputTokens).toBeGreaterThan(0);
      expect(second.usage?.inputTokens).toBeGreaterThan(first.usage?.inputTokens ?? Infinity);
      expect(second.said.startsWith("[weather]{")).toBe(true);
      // Two calls of one turn, as other engines make them; without tools the template still tells them.
      const both = [
        { role: "user", text: "hi" },
        {
          role: "assistant",
          parts: [
            { type: "text", text: "Both." },
            { type: "tool-call", id: "c1", name: "weather", arguments: '{"city":"Rome"}' },
            { type: "tool-call", id: "c2", name: "weather", arguments: "no JSON" },
          ],
        },
        { role: "tool", callId: "c1", text: "sunny" },
        { role: "tool", callId: "c2", text: '{"sky":"grey"}' },
        { role: "user", text: "and?" },
      ] as const;
      const third = await hear(engine, { turns: both, outputTokensMax: 2 });
      expect(third.said).toBe("<call>\n{");
    },
    patienceMs,
  );
});

describe("a context without room for tools", () => {
  it(
    "is described so, and such requests are answered in text",
    async () => {
      await using engine = await openTinyEngine({ contextTokens: 512 });
      expect(engine.deployment.describe().takesTools).toBe(false);
      const { said } = await hear(engine, {
        tools: [tool("act")],
        toolChoice: { type: "required" },
        outputTokensMax: 4,
      });
      expect(said).toBe("0123");
    },
    patienceMs,
  );
});

describe("a model that thinks", () => {
  const chatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' and " +
    "message['reasoning_content'] %}{{ '<think>\n' + message['reasoning_content'] + '\n</think>\n\n' }}{% endif %}" +
    "{{ message['content'] + '<|im_end|>' + '\n' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  const script = ["<thi", "nk>", "\nhm, ", "wh", "y</", "thi", "nk>\n", "\nSo <", "it", " is."];

  it(
    "has its thoughts told apart, and their tokens counted",
    async () => {
      await using engine = await openTinyEngine({}, { chatTemplate, script });
      const { reason, said, usage } = await hear(engine, {});
      expect(said).toBe("(hm, why)So <it is.");
      expect(reason).toBe("stop");
      expect(usage).toMatchObject({ outputTokens: 11, reasoningTokens: 5 });
      for (const outputTokensMax of [1, 2, 3, 4, 5, 6, 7]) {
        const cut = await hear(engine, { outputTokensMax });
        expect(["", "(hm,)", "(hm, wh)", "(hm, why)"]).toContain(cut.said);
        expect(cut.reason).toBe("length");
      }
      const stopped = await hear(engine, { options: { stopSequences: ["hm", "it"] } });
      expect([stopped.said, stopped.reason]).toEqual(["(hm, why)So <", "stop"]);
    },
    patienceMs,
  );

  it.each([
    ["closes its thought", ["I must", "</thi", "nk> x"], "(I must)"],
    ["ends its turn instead", ["I must"], "(I must)"],
  ])(
    "makes the call that is forced after it %s, where every answer begins with one",
    async (_name, words, thought) => {
      const opens = chatTemplate.replace(
        /assistant\n' \}\}\{% endif %\}$/u,
        "assistant\n<think>\n' }}{% endif %}",
      );
      expect(opens).not.toBe(chatTemplate);
      await using engine = await openTinyEngine(
        {},
        { chatTemplate: opens, script: words, closing: true },
      );
      const { reason, said, usage } = await hear(engine, {
        tools: [tool("weather", city), tool("other", city)],
        toolChoice: { type: "required" },
        outputTokensMax: 400,
      });
      expect(said.slice(0, thought.length)).toBe(thought);
      expect(said.slice(thought.length)).toMatch(/^\[(weather|other)\]\{.*\}$/u);
      expect(reason).toBe("tool-calls");
      expect(usage?.reasoningTokens).toBe(words.length === 1 ? 2 : words.length);
    },
    patienceMs,
  );

  it(
    "gets its thought of the turn under way again, and none of earlier turns",
    async () => {
      await using engine = await openTinyEngine({}, { chatTemplate, script });
      const inputTokens = async (turns: readonly Turn[]): Promise<number> => {
        const { usage } = await hear(engine, { turns, outputTokensMax: 1 });
        return usage?.inputTokens ?? 0;
      };
      const call = { type: "tool-call", id: "c", name: "act", arguments: "{}" } as const;
      const underWay = (thought: string): readonly Turn[] => [
        { role: "user", text: "hi" },
        { role: "assistant", parts: [{ type: "reasoning", text: thought }, call] },
        { role: "tool", callId: "c", text: "done" },
      ];
      const earlier = (thought: string): readonly Turn[] => [
        ...underWay(thought),
        { role: "assistant", parts: [{ type: "text", text: "so" }] },
        { role: "user", text: "and?" },
      ];
      expect(await inputTokens(earlier("long thought"))).toBe(await inputTokens(earlier("")));
      expect(await inputTokens(underWay("long thought"))).toBeGreaterThan(
        await inputTokens(underWay("")),
      );
    },
    patienceMs,
  );
});
