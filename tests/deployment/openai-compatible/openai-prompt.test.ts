import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type {
  Conversation,
  GenerationOptions,
  Tool,
} from "../../../src/conversation/conversation.ts";
import type {
  DialectName,
  TakenEffort,
} from "../../../src/deployment/openai-compatible/dialect.ts";
import {
  completeBody,
  openaiPromptSettings,
  prepareOpenaiPrompt,
} from "../../../src/deployment/openai-compatible/openai-prompt.ts";

const noOptions: GenerationOptions = {
  temperature: null,
  topP: null,
  topK: null,
  stopSequences: [],
  seed: null,
  presencePenalty: null,
  frequencyPenalty: null,
  reasoningEffort: null,
  responseFormat: "text",
};

const plain: Conversation = {
  turns: [{ role: "user", text: "hi" }],
  tools: [],
  toolChoice: { type: "auto" },
  parallelToolCalls: null,
};

const weather = {
  name: "weather",
  description: "Tells it",
  parameters: { type: "object" },
} as const;
const clock = { name: "clock", description: null, parameters: null };

function bodyOf(
  conversation: Partial<Conversation> = {},
  options: Partial<GenerationOptions> = {},
  dialect: DialectName = "generic",
): Record<string, unknown> {
  const promptSettings = openaiPromptSettings(dialect, "reasoning_content");
  const prompt = prepareOpenaiPrompt(
    promptSettings,
    { ...plain, ...conversation },
    { ...noOptions, ...options },
  );
  return JSON.parse(Buffer.concat(completeBody(prompt, 'a "model"', 77)).toString("utf8"));
}

const call = (id: string, name: string, written: string) => ({
  id,
  type: "function",
  function: { name, arguments: written },
});

describe("the body", () => {
  test("is a streamed request with the model and the limit that it is given", () => {
    expect(bodyOf()).toEqual({
      messages: [{ role: "user", content: "hi" }],
      stream: true,
      stream_options: { include_usage: true },
      model: 'a "model"',
      max_tokens: 77,
    });
  });

  test("keeps every turn, and later system turns where they are", () => {
    const { messages } = bodyOf({
      turns: [
        { role: "system", text: "be brief" },
        { role: "user", text: "" },
        {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "think " },
            { type: "text", text: "I " },
            { type: "reasoning", text: "more" },
            { type: "text", text: "look." },
            { type: "tool-call", id: "c1", name: "weather", arguments: '{ "city":"Graz" }' },
            { type: "tool-call", id: "c2", name: "clock", arguments: "" },
          ],
        },
        { role: "tool", callId: "c1", text: "sun" },
        { role: "tool", callId: "c2", text: "" },
        { role: "system", text: "now in French" },
        { role: "assistant", parts: [{ type: "reasoning", text: "only this" }] },
        {
          role: "assistant",
          parts: [{ type: "tool-call", id: "c3", name: "clock", arguments: "{" }],
        },
        { role: "assistant", parts: [] },
      ],
    });
    expect(messages).toEqual([
      { role: "system", content: "be brief" },
      { role: "user", content: "" },
      {
        role: "assistant",
        content: "I look.",
        reasoning_content: "think more",
        tool_calls: [call("c1", "weather", '{ "city":"Graz" }'), call("c2", "clock", "")],
      },
      { role: "tool", tool_call_id: "c1", content: "sun" },
      { role: "tool", tool_call_id: "c2", content: "" },
      { role: "system", content: "now in French" },
      { role: "assistant", content: "", reasoning_content: "only this" },
      { role: "assistant", content: null, tool_calls: [call("c3", "clock", "{")] },
      { role: "assistant", content: "" },
    ]);
  });

  test("has tools as functions, with parameters even where the client gave none", () => {
    expect(bodyOf({ tools: [weather, clock], parallelToolCalls: false })).toMatchObject({
      tools: [
        {
          type: "function",
          function: { name: "weather", description: "Tells it", parameters: { type: "object" } },
        },
        {
          type: "function",
          function: { name: "clock", parameters: { type: "object", properties: {} } },
        },
      ],
      parallel_tool_calls: false,
    });
    expect(bodyOf({ tools: [clock] })).not.toHaveProperty("tool_choice");
    expect(bodyOf({ tools: [clock] })).not.toHaveProperty("parallel_tool_calls");
    expect(bodyOf({ tools: [clock] })).not.toHaveProperty("tools.0.function.description");
  });

  test("has nothing of tools when there are none", () => {
    const body = bodyOf({ toolChoice: { type: "required" }, parallelToolCalls: true });
    expect(body).not.toHaveProperty("tools");
    expect(body).not.toHaveProperty("tool_choice");
    expect(body).not.toHaveProperty("parallel_tool_calls");
  });

  test("has the options that were given, and no others", () => {
    const given = {
      temperature: 0,
      topP: 0.5,
      topK: 40,
      stopSequences: ["END", "\n"],
      seed: -3,
      presencePenalty: 0.1,
      frequencyPenalty: -0.1,
      reasoningEffort: "high",
      responseFormat: "json-object",
    } as const;
    expect(bodyOf({}, given, "vllm")).toMatchObject({
      temperature: 0,
      top_p: 0.5,
      top_k: 40,
      stop: ["END", "\n"],
      seed: -3,
      presence_penalty: 0.1,
      frequency_penalty: -0.1,
      reasoning_effort: "high",
      response_format: { type: "json_object" },
    });
    expect(Object.keys(bodyOf({}, {}, "vllm"))).toEqual([
      "messages",
      "stream",
      "stream_options",
      "model",
      "max_tokens",
    ]);
  });
});

const asked = (dialect: DialectName) => bodyOf({}, {}, dialect)["stream_options"];

const told = (dialect: DialectName, effort: string) =>
  bodyOf({}, { reasoningEffort: effort }, dialect)["reasoning_effort"];

describe("the dialects", () => {
  test("ask for running usage where the engine has it", () => {
    const running = { include_usage: true, continuous_usage_stats: true };
    expect(asked("vllm")).toEqual(running);
    expect(asked("sglang")).toEqual(running);
    for (const dialect of ["llama-cpp", "ollama", "generic"] as const)
      expect(asked(dialect)).toEqual({ include_usage: true });
  });

  test("leave top_k out where it is not known, and where it means no limit", () => {
    for (const dialect of ["vllm", "sglang", "llama-cpp"] as const) {
      expect(bodyOf({}, { topK: 5 }, dialect)).toHaveProperty("top_k", 5);
      expect(bodyOf({}, { topK: 0 }, dialect)).not.toHaveProperty("top_k");
    }
    for (const dialect of ["ollama", "generic"] as const)
      expect(bodyOf({}, { topK: 5 }, dialect)).not.toHaveProperty("top_k");
  });

  test.each([
    ["vllm", "required", { type: "required" }],
    ["vllm", "none", { type: "none" }],
    ["vllm", { type: "function", function: { name: "clock" } }, { type: "tool", name: "clock" }],
    ["sglang", { type: "function", function: { name: "clock" } }, { type: "tool", name: "clock" }],
    ["llama-cpp", "required", { type: "tool", name: "clock" }],
    ["llama-cpp", "none", { type: "none" }],
    ["ollama", undefined, { type: "tool", name: "clock" }],
    ["ollama", undefined, { type: "required" }],
  ] as const)("%s tells a choice of tool as %j", (dialect, told, toolChoice) => {
    const body = bodyOf({ tools: [weather, clock], toolChoice }, {}, dialect);
    expect(body["tool_choice"]).toEqual(told);
    const alone = toolChoice.type === "tool" && (dialect === "ollama" || dialect === "llama-cpp");
    expect(body["tools"]).toHaveLength(alone ? 1 : 2);
    if (alone) expect(body["tools"]).toMatchObject([{ function: { name: "clock" } }]);
  });

  test("show no tools to an engine that would not keep to `none`", () => {
    expect(
      bodyOf({ tools: [clock], toolChoice: { type: "none" } }, {}, "ollama"),
    ).not.toHaveProperty("tools");
  });

  test("tell a reasoning effort in the engine's own words, or not at all", () => {
    expect(told("vllm", "minimal")).toBe("low");
    expect(told("vllm", "xhigh")).toBe("high");
    expect(told("vllm", "none")).toBe("none");
    expect(told("llama-cpp", "none")).toBe("none");
    expect(told("sglang", "none")).toBeUndefined();
    expect(told("generic", "extreme")).toBeUndefined();
    expect(told("generic", "toString")).toBeUndefined();
  });

  test("give reasoning back in the field that is set, and to Ollama in the only one that it reads", () => {
    const turns = [{ role: "assistant", parts: [{ type: "reasoning", text: "r" }] }] as const;
    const field = (dialect: DialectName, setting: "reasoning" | "reasoning_content") => {
      const promptSettings = openaiPromptSettings(dialect, setting);
      const { bytes } = prepareOpenaiPrompt(promptSettings, { ...plain, turns }, noOptions);
      return /"(reasoning[a-z_]*)":"r"/u.exec(Buffer.from(bytes).toString("utf8"))?.[1];
    };
    expect(field("vllm", "reasoning_content")).toBe("reasoning_content");
    expect(field("vllm", "reasoning")).toBe("reasoning");
    expect(field("ollama", "reasoning_content")).toBe("reasoning");
  });

  test.each([
    ["", "{}"],
    [" \n", "{}"],
    ['{"city', '{"input":"{\\"city"}'],
    ["[1]", '{"input":"[1]"}'],
    ["null", '{"input":"null"}'],
    ['{ "a" : 1e0 }', '{ "a" : 1e0 }'],
  ])("give engines that parse arguments an object for %j", (written, object) => {
    const parts = [{ type: "tool-call", id: "c", name: "f", arguments: written }] as const;
    const turns = [{ role: "assistant", parts }] as const;
    const path = "messages.0.tool_calls.0.function.arguments";
    // llama.cpp: 500 "Failed to parse tool call arguments as JSON", Ollama: 400 "invalid tool call arguments".
    expect(bodyOf({ turns }, {}, "llama-cpp")).toHaveProperty(path, object);
    expect(bodyOf({ turns }, {}, "ollama")).toHaveProperty(path, object);
    expect(bodyOf({ turns }, {}, "vllm")).toHaveProperty(path, written);
  });

  test("tell `strict` to engines that read it, where it was asked for", () => {
    const strict = { ...weather, strict: true } as const;
    const told = (dialect: DialectName, tool: Tool): unknown =>
      bodyOf({ tools: [tool] }, {}, dialect)["tools"];
    for (const dialect of ["vllm", "sglang"] as const) {
      expect(told(dialect, strict)).toMatchObject([{ function: { strict: true } }]);
      expect(told(dialect, weather)).not.toMatchObject([{ function: { strict: true } }]);
    }
    expect(told("generic", strict)).toEqual(told("generic", weather));
  });

  test("leave the effort out where the engine takes none for its model, or none but `none`", () => {
    const effort = (takesEffort: TakenEffort, reasoningEffort = "low"): unknown => {
      const options = { ...noOptions, reasoningEffort };
      const promptSettings = openaiPromptSettings("ollama", "reasoning_content", { takesEffort });
      const prompt = prepareOpenaiPrompt(promptSettings, plain, options);
      return JSON.parse(Buffer.concat(completeBody(prompt, "m", 1)).toString("utf8"))[
        "reasoning_effort"
      ];
    };
    expect(effort(true)).toBe("low");
    expect(effort(false)).toBeUndefined();
    expect(effort("none")).toBeUndefined();
    expect(effort("none", "none")).toBe("none");
  });

  test("tell a generic engine what the operator says that it takes", () => {
    const extraFields = ["continuous_usage_stats", "strict", "top_k"] as const;
    const promptSettings = openaiPromptSettings("generic", "reasoning_content", { extraFields });
    const tools = [{ ...weather, strict: true as const }];
    const prompt = prepareOpenaiPrompt(
      promptSettings,
      { ...plain, tools },
      { ...noOptions, topK: 3 },
    );
    const body = JSON.parse(Buffer.concat(completeBody(prompt, "m", 1)).toString("utf8"));
    expect(body).toMatchObject({
      top_k: 3,
      stream_options: { include_usage: true, continuous_usage_stats: true },
      tools: [{ function: { strict: true } }],
    });
  });
});

describe("the bytes", () => {
  const promptSettings = openaiPromptSettings("vllm", "reasoning_content");

  test("are the same for equal conversations", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, fc.option(fc.double(), { nil: null }), (system, user, topP) => {
        const make = () =>
          prepareOpenaiPrompt(
            structuredClone(promptSettings),
            {
              ...plain,
              turns: [
                { role: "system", text: system },
                { role: "user", text: user },
              ],
            },
            { ...noOptions, topP },
          );
        expect(Buffer.from(make().bytes).equals(Buffer.from(make().bytes))).toBe(true);
      }),
    );
  });

  test("own their memory, so that they can be handed to another thread", () => {
    const { bytes } = prepareOpenaiPrompt(promptSettings, plain, noOptions);
    expect(bytes.byteLength).toBe(bytes.buffer.byteLength);
  });

  test("are well-formed whatever the texts hold", () => {
    const half = "\ud83d";
    const tool = { name: "t", description: half, parameters: { [half]: [half, "\\ud83d", "🦊"] } };
    const prompt = prepareOpenaiPrompt(
      promptSettings,
      { ...plain, turns: [{ role: "user", text: `a${half}b \\ud800 🦊` }], tools: [tool] },
      noOptions,
    );
    const text = new TextDecoder("utf-8", { fatal: true }).decode(
      Buffer.concat(completeBody(prompt, "m", 1)),
    );
    expect(text.isWellFormed()).toBe(true);
    expect(text).not.toMatch(/[^\\]\\ud83d/u);
    const body = JSON.parse(text);
    expect(body.messages[0].content).toBe("a\ufffdb \\ud800 🦊");
    expect(body.tools[0].function).toEqual({
      name: "t",
      description: "\ufffd",
      parameters: { "\ufffd": ["\ufffd", "\\ud83d", "🦊"] },
    });
  });

  test("keep a schema's member that is named like JavaScript's own", () => {
    const parameters = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}');
    const prompt = prepareOpenaiPrompt(
      promptSettings,
      { ...plain, tools: [{ name: "t", description: "\udc00", parameters }] },
      noOptions,
    );
    expect(Buffer.from(prompt.bytes).toString("utf8")).toContain('"__proto__":{"type":"string"}');
  });

  test("settings that came as plain data with an unknown dialect are read as generic", () => {
    const unknown = { kind: "openai-compatible", dialect: "constructor" };
    expect(prepareOpenaiPrompt(unknown, plain, { ...noOptions, topK: 3 }).bytes).toEqual(
      prepareOpenaiPrompt(openaiPromptSettings("generic", "reasoning_content"), plain, noOptions)
        .bytes,
    );
  });
});
