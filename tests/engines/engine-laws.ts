import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import type { JsonRecord } from "../reader/reading.ts";
import { formats } from "../service/start-service.ts";
import { askEngine, askService } from "./answers.ts";
import { type Engine, type EngineProcess, openEngineProcess } from "./engine.ts";
import { describeFaults } from "./fault-laws.ts";
import { describeSdks } from "./sdk-laws.ts";
import { missingPrograms } from "./install/needed-programs.ts";
import { type Cannot, type Laws, lawsBut } from "./laws.ts";
import { serve, type Served } from "./served.ts";

// A quarter of an hour to build, on two cores that may have other work.
const installMs = 5_400_000;

const hi = "Name three colours of the rainbow.";
const spellings = formats.flatMap(({ name }) =>
  [false, true].map((stream) => ({
    format: name,
    stream,
    title: `${name}${stream ? ", streamed" : ""}`,
  })),
);

const weather = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};

/** What is known of an engine before it is installed. */
export interface EngineToTest {
  readonly name: string;
  /** Programs of the machine without which it cannot be installed: where one is missing, its tests are skipped. */
  readonly needs: readonly string[];
  readonly cannot: Cannot;
  readonly open: () => Promise<Engine>;
}

/** Everything that holds for every engine. Registered at once; the engine is installed before the first test. */
export function describeEngine({ cannot, name, needs, open }: EngineToTest): void {
  const missing = missingPrograms(needs);
  if (missing.length > 0) {
    it.skip(`${name} (not installed: this machine lacks ${missing.join(", ")})`, () => undefined);
    return;
  }
  const law = lawsBut(cannot);
  describe(name, () => {
    let served: Served;
    let plain: EngineProcess;

    beforeAll(async () => {
      const engine = await open();
      plain = await openEngineProcess(engine, { template: engine.templates.calls });
      await plain.start();
      served = { engine: plain, service: await serve(plain.origin) };
    }, installMs);
    afterAll(async () => {
      // The ledger counts whatever happened above.
      expect(await served.service.ledger.verify([], false)).toMatchObject({
        ok: true,
        problems: [],
      });
      expect((await served.service.settledCredit()).held).toBe(0n);
      await served.service[Symbol.asyncDispose]();
      await plain[Symbol.asyncDispose]();
    });

    it("is found: dialect, model and context", () => {
      const { gateway, config } = served.service;
      expect(config.deployment?.dialect).toBe("auto");
      expect(gateway.describe()).toEqual({
        ready: true,
        model: plain.engine.idOf("smol"),
        contextTokens: cannot.context === undefined ? 2_048 : null,
        takesTools: true,
      });
    });

    describeText(() => served, law);
    describeTools(() => served, law);
    describeSdks(() => served, law);
    describeFaults(() => served, law);
  });
}

function describeText(served: () => Served, law: Laws): void {
  describe.each(spellings)("$title", ({ format, stream }) => {
    it("text, finish and usage are the engine's own", async () => {
      const { engine, service } = served();
      const messages = [{ role: "user", content: hi }];
      const direct = await askEngine(engine.origin, { messages });
      const through = await askService(service, format, { send: sendOf(format, messages), stream });
      const { text, finish, input, output } = direct;
      expect(through).toMatchObject({ status: 200, text, finish, input, output });
      expect(text).not.toBe("");
    });

    it("a system text and earlier turns reach the engine", async () => {
      const { engine, service } = served();
      const messages = [
        { role: "system", content: "You answer in one short sentence." },
        { role: "user", content: "Hello" },
        { role: "assistant", content: "Hello. What is it?" },
        { role: "user", content: hi },
      ];
      const direct = await askEngine(engine.origin, { messages });
      const through = await askService(service, format, { send: sendOf(format, messages), stream });
      const { text, input } = direct;
      expect(through).toMatchObject({ status: 200, text, input });
    });

    it("one token is an answer, cut", async () => {
      const { service } = served();
      // Responses asks for 16 tokens at least in some SDKs; the service takes 1.
      const send = sendOf(format, [{ role: "user", content: hi }]);
      const through = await askService(service, format, { send, stream, max: 1 });
      expect(through).toMatchObject({ status: 200, finish: "length", output: 1 });
    });

    it("a conversation beyond the context is refused as such", async () => {
      const { service } = served();
      const content = "Every word of this sentence is one that counts. ".repeat(400);
      const send = sendOf(format, [{ role: "user", content }]);
      const through = await askService(service, format, { send, stream });
      expect(through.status).toBe(400);
      if (format === "messages")
        expect(through.raw).toMatch(/prompt is too long: \d+ tokens > 2048 maximum/u);
      else expect(through.error).toBe("context_length_exceeded");
    });
  });

  it("an allowance beyond the context is cut to what fits", async () => {
    const { service } = served();
    const messages = [{ role: "user", content: hi }];
    // The limit is what is tried: the answer itself may end soon.
    const sent = { send: { messages, stop: [" the", "."] }, stream: true, max: 60_000 };
    const through = await askService(service, "chat-completions", sent);
    expect(through).toMatchObject({ status: 200, error: null });
    expect(through.input + through.output).toBeLessThanOrEqual(2_048);
  });

  it("stop sequences end an answer, and are named where the engine names them", async () => {
    const { engine, service } = served();
    const messages = [{ role: "user", content: hi }];
    const whole = await askEngine(engine.origin, { messages });
    const stop = whole.text.slice(12, 16);
    const direct = await askEngine(engine.origin, { messages, stop: [stop] });
    const send = { messages, stop_sequences: [stop] };
    const through = await askService(service, "messages", { send, stream: true });
    const stopSequence = engine.engine.namesStopSequence ? stop : null;
    expect(through).toMatchObject({ text: direct.text, finish: "stop", stopSequence });
  });

  it("top_p 0 is taken, and a seed repeats an answer", async () => {
    const { service } = served();
    const messages = [{ role: "user", content: hi }];
    const zero = await askService(service, "chat-completions", {
      send: { messages, top_p: 0 },
      stream: false,
    });
    expect(zero).toMatchObject({ status: 200, error: null });
    const sampled = { messages, temperature: 1, seed: 7 };
    const [first, second] = [
      await askService(service, "chat-completions", { send: sampled, stream: false }),
      await askService(service, "chat-completions", { send: sampled, stream: true }),
    ];
    expect(first.text).toBe(second.text);
  });

  it("a JSON object is one", async () => {
    const { service } = served();
    const messages = [
      { role: "user", content: 'Answer with the JSON object {"ok": true} and nothing else.' },
    ];
    const send = { messages, response_format: { type: "json_object" } };
    const { finish, text } = await askService(service, "chat-completions", {
      send,
      stream: true,
      max: 200,
    });
    expect(text).toMatch(/^\s*\{/u);
    if (finish === "stop") expect(JSON.parse(text)).toBeTypeOf("object");
  });

  const counts = law("exactCounts");
  counts.test(
    `count_tokens is what the engine counts, in all languages and with tools${counts.because}`,
    async () => {
      const { service } = served();
      const tools = [{ name: "weather", description: "Tells it.", input_schema: weather }];
      for (const content of [
        "Hello there.",
        "Größenwahn überall",
        "你好，世界",
        "1234567890".repeat(9),
      ]) {
        for (const send of [
          { messages: [{ role: "user", content }] },
          { messages: [{ role: "user", content }], tools },
        ]) {
          const counted = await service.post("/v1/messages/count_tokens", { model: "m", ...send });
          const { input_tokens } = (await counted.json()) as { readonly input_tokens: number };
          const { input } = await askService(service, "messages", { send, stream: false, max: 1 });
          expect(input_tokens, content).toBe(input);
        }
      }
    },
  );
}

function describeTools(served: () => Served, law: Laws): void {
  describe.each(spellings)("tools in $title", ({ format, stream }) => {
    for (const which of ["any", "this one"]) {
      const { because, test } = law(which === "any" ? "forcedCalls" : "forcedCallsByName");
      test(`a forced call keeps to its schema: ${which}${because}`, async () => {
        const { service } = served();
        const content = "What will the weather be in Rome for 3 days?";
        const messages = [{ role: "user", content }];
        const send = { ...sendOf(format, messages), ...toolsOf(format, which === "any") };
        const through = await askService(service, format, { send, stream, max: 200 });
        expect(through, through.raw).toMatchObject({ status: 200, finish: "tool-calls" });
        for (const call of through.calls) {
          expect(call.name).toBe("weather");
          const { city, days } = JSON.parse(call.arguments) as JsonRecord;
          expect(["Paris", "Rome"]).toContain(city);
          expect(days).toBeTypeOf("number");
        }
      });
    }
  });

  const broken = law("brokenArguments");
  broken.test.each(["", '{"city', "[1]"])(
    `a call with the arguments %j in the history blocks nothing${broken.because}`,
    async (written) => {
      const { service } = served();
      const call = {
        id: "call_1",
        type: "function",
        function: { name: "weather", arguments: written },
      };
      const messages = [
        { role: "user", content: "The weather?" },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "error: no such arguments" },
        { role: "user", content: "Go on." },
      ];
      for (const tools of [{}, { ...toolsOf("chat-completions", true), tool_choice: "none" }]) {
        const through = await askService(service, "chat-completions", {
          send: { messages, ...tools },
          stream: false,
          max: 5,
        });
        expect(through, through.raw).toMatchObject({ status: 200, error: null });
      }
    },
  );

  it("results go back and the conversation goes on", async () => {
    const { service } = served();
    const use = {
      type: "tool_use",
      id: "toolu_1",
      name: "weather",
      input: { city: "Rome", days: 3 },
    };
    const messages = [
      { role: "user", content: "The weather?" },
      { role: "assistant", content: [use] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "sun" }] },
    ];
    const through = await askService(service, "messages", { send: { messages }, stream: true });
    expect(through).toMatchObject({ status: 200, error: null });
    expect(through.text).not.toBe("");
  });

  it("an effort is taken or left out, never refused", async () => {
    const { service } = served();
    const messages = [{ role: "user", content: hi }];
    for (const effort of ["none", "low", "medium", "high", "xhigh"]) {
      const send = { messages, reasoning_effort: effort };
      const through = await askService(service, "chat-completions", {
        send,
        stream: false,
        max: 3,
      });
      expect(through, effort).toMatchObject({ status: 200, error: null });
    }
  });
}

type Message = { readonly role: string; readonly content: string };

/** The same conversation in the fields of a format. */
function sendOf(format: WireFormatName, messages: readonly Message[]): JsonRecord {
  if (format === "responses") return { input: messages };
  if (format === "chat-completions") return { messages };
  const system = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  const rest = messages.filter(({ role }) => role !== "system");
  return { messages: rest, ...(system.length === 0 ? {} : { system: system.join("\n\n") }) };
}

function toolsOf(format: WireFormatName, any: boolean): JsonRecord {
  const tool = { name: "weather", description: "Tells the weather of a city." };
  const strict = true;
  if (format === "messages")
    return {
      tools: [{ ...tool, input_schema: weather, strict }],
      tool_choice: any ? { type: "any" } : { type: "tool", name: "weather" },
    };
  const flat = { type: "function", ...tool, parameters: weather, strict };
  if (format === "responses")
    return { tools: [flat], tool_choice: any ? "required" : { type: "function", name: "weather" } };
  return {
    tools: [{ type: "function", function: { ...tool, parameters: weather, strict } }],
    tool_choice: any ? "required" : { type: "function", function: { name: "weather" } },
  };
}
