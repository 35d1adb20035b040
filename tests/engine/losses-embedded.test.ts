import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { embeddedLosses } from "../documents/losses/tables/embedded.ts";
import { type EngineTopic, engineTopics } from "../documents/losses/tables/engine-losses.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { isRecord, type JsonRecord } from "../cases/files.ts";
import { writeTinyModel } from "../../engine/tests/make-tiny-model.ts";
import { formats, startService, type TestService } from "../service/start-service.ts";
import { writeCell } from "../documents/losses/document.ts";

// It knows tools and thoughts, and refuses long conversations, as others refuse roles out of turn.
const chatTemplate =
  "{% if messages | length > 12 %}{{ raise_exception('too many') }}{% endif %}" +
  "{% if tools %}{{ '<|im_start|>system\\nTOOLS:' }}{% for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}" +
  "{% for message in messages %}" +
  "{{ '<|im_start|>' + message.role + '\\n' }}" +
  "{% if message.role == 'assistant' and message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}" +
  "{% if message.content %}{{ message.content }}{% endif %}" +
  "{% if message.tool_calls %}{% for call in message.tool_calls %}{{ '\\n<call>{\"name\": \"' + call.function.name + '\", \"arguments\": ' + (call.function.arguments | tojson) + '}</call>' }}{% endfor %}{% endif %}" +
  "{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

let service: TestService;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tributary-losses-"));
  const model = join(folder, "tiny.gguf");
  writeTinyModel(model, { chatTemplate, closing: true });
  service = await startService({
    environment: {
      TRIBUTARY_DEPLOYMENT_URL: "",
      TRIBUTARY_MODEL: model,
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
    },
  });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** What a test needs of an answer in any format. */
interface Answer {
  readonly status: number;
  readonly text: string;
  readonly inputTokens: number;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

async function ask(send: JsonRecord, format: WireFormatName = "chat-completions"): Promise<Answer> {
  const { body, outputField, path } = formats.find(({ name }) => name === format) ?? formats[0];
  const response = await service.post(path, { ...body, [outputField]: 40, ...send });
  const answer: unknown = await response.json();
  if (!isRecord(answer)) throw new Error("no answer");
  if (!response.ok)
    return { status: response.status, text: JSON.stringify(answer), inputTokens: 0, calls: [] };
  return {
    status: response.status,
    ...(format === "messages" ? readMessage(answer) : readChat(answer)),
  };
}

function readMessage(answer: JsonRecord): Omit<Answer, "status"> {
  const { content, usage } = answer as {
    content: { type: string; text?: string; name?: string; input?: unknown }[];
    usage: { input_tokens: number; cache_read_input_tokens: number };
  };
  return {
    text: content.map(({ text }) => text ?? "").join(""),
    inputTokens: usage.input_tokens + usage.cache_read_input_tokens,
    calls: content
      .filter(({ type }) => type === "tool_use")
      .map(({ name, input }) => ({ name: name ?? "", arguments: JSON.stringify(input) })),
  };
}

function readChat(answer: JsonRecord): Omit<Answer, "status"> {
  const { choices, usage } = answer as {
    choices: {
      message: {
        content: string | null;
        tool_calls?: { function: { name: string; arguments: string } }[];
      };
    }[];
    usage: { prompt_tokens: number };
  };
  const message = choices[0]?.message;
  return {
    text: message?.content ?? "",
    inputTokens: usage.prompt_tokens,
    calls: (message?.tool_calls ?? []).map((call) => call.function),
  };
}

/** Tokens that the engine has read: one a letter, so that what the prompt leaves out shows. */
async function read(send: JsonRecord): Promise<number> {
  const { inputTokens, status, text } = await ask({ ...send, max_completion_tokens: 1 });
  expect(status, text).toBe(200);
  return inputTokens;
}

const hi = { role: "user", content: "Hi" };

/** What the model says by chance after the letter a, from one seed where none is given. */
async function say(options: JsonRecord): Promise<string> {
  const messages = [hi, { role: "assistant", content: "a" }];
  const { status, text } = await ask({ messages, seed: 7, ...options });
  expect(status, text).toBe(200);
  return text;
}

function tool(name: string, parameters?: JsonRecord): JsonRecord {
  return {
    type: "function",
    function: { name, ...(parameters === undefined ? {} : { parameters }) },
  };
}

const nothing = { type: "object", properties: {} };
const place = { type: "object", properties: { city: { const: "Rome" } }, required: ["city"] };
const placed = { arguments: expect.stringMatching(/^\{ ?"city": ?"Rome" ?\}$/u) };
const tools = [tool("weather", place), tool("time", place)];

function called(...calls: readonly (readonly [string, string])[]): JsonRecord {
  return {
    role: "assistant",
    content: null,
    tool_calls: calls.map(([id, text]) => ({
      id,
      type: "function",
      function: { name: "weather", arguments: text },
    })),
  };
}

function result(id: string, content: string): JsonRecord {
  return { role: "tool", tool_call_id: id, content };
}

/** By topics: the words of the table, and what shows that they are true. */
const shown: Readonly<Record<EngineTopic, readonly [cell: string, show: () => Promise<void>]>> = {
  temperature: [
    "carried",
    async () => {
      const cold = await say({ temperature: 0 });
      expect(await say({ temperature: 0, seed: 8 })).toBe(cold);
      expect(await say({ temperature: 2 })).not.toBe(cold);
    },
  ],
  topP: [
    "carried",
    async () => {
      const greedy = await say({ temperature: 0 });
      expect(await say({ temperature: 2, top_p: 0.01 })).toBe(greedy);
      expect(await say({ temperature: 2, top_p: 1 })).not.toBe(greedy);
    },
  ],
  topK: [
    "carried: from 1 on; at 0 the model's own holds",
    async () => {
      const messages = [hi, { role: "assistant", content: "a" }];
      const top = async (most: number): Promise<string> =>
        (await ask({ messages, temperature: 2, top_k: most }, "messages")).text;
      const greedy = await say({ temperature: 0 });
      expect(await top(1)).toBe(greedy);
      expect(await top(0)).not.toBe(greedy);
    },
  ],
  stopSequences: [
    "carried: in text, neither in reasoning nor in calls",
    async () => {
      expect((await ask({ stop: ["99", "567"] })).text).toBe("01234");
      const forced = { tools: [tool("weather", place)], tool_choice: "required" };
      expect((await ask({ ...forced, stop: ["{"] })).calls).toHaveLength(1);
    },
  ],
  seed: [
    "carried: of 32 bits; a larger one is folded",
    async () => {
      const first = await say({ temperature: 1 });
      expect(await say({ temperature: 1 })).toBe(first);
      expect(await say({ temperature: 1, seed: 8 })).not.toBe(first);
      expect(await say({ temperature: 1, seed: 7 + 2 ** 32 - 1 })).toBe(first);
    },
  ],
  presencePenalty: [
    "carried: over the last 512 tokens of the answer",
    async () => {
      const greedy = await say({ temperature: 0 });
      expect(await say({ temperature: 0, presence_penalty: 2 })).not.toBe(greedy);
    },
  ],
  frequencyPenalty: [
    "carried: over the last 512 tokens of the answer",
    async () => {
      const greedy = await say({ temperature: 0 });
      expect(await say({ temperature: 0, frequency_penalty: 2 })).not.toBe(greedy);
    },
  ],
  reasoningEffort: [
    "lost",
    async () => {
      expect(await say({ reasoning_effort: "high" })).toBe(await say({}));
      expect(await read({ reasoning_effort: "high" })).toBe(await read({}));
    },
  ],
  responseFormat: [
    "carried: `json_object` is enforced by a grammar",
    async () => {
      expect((await ask({})).text).toMatch(/^0/u);
      const json = { response_format: { type: "json_object" } };
      expect((await ask({ ...json, seed: 7 })).text).toMatch(/^\s*\{/u);
    },
  ],
  laterSystem: [
    "carried: as far as the model's template takes it, else the request is refused",
    async () => {
      const after = (content: string) => ({ messages: [hi, { role: "system", content }, hi] });
      expect((await read(after("x".repeat(9)))) - (await read(after("x")))).toBe(8);
      const said = [...after("x").messages, { role: "assistant", content: "y" }];
      const refused = await ask({ messages: Array.from({ length: 7 }, () => said).flat() });
      expect([refused.status, refused.text]).toEqual([
        400,
        expect.stringContaining("refused_by_deployment"),
      ]);
    },
  ],
  orderOfParts: [
    "converted: reasoning, text, then the calls",
    async () => {
      const text = (words: string) => ({ type: "text", text: words });
      const call = { type: "tool_use", id: "c1", name: "weather", input: {} };
      const spelled = async (...content: readonly JsonRecord[]): Promise<number> => {
        const messages = [hi, { role: "assistant", content }];
        const { inputTokens, status, text: said } = await ask({ messages }, "messages");
        expect(status, said).toBe(200);
        return inputTokens;
      };
      const first = await spelled(text("ab"), call);
      expect(await spelled(text("a"), call, text("b"))).toBe(first);
      expect(await spelled(call, text("ab"))).toBe(first);
      expect(await spelled(text("abc"), call)).toBe(first + 1);
    },
  ],
  earlierReasoning: [
    "converted: within the turn under way; that of earlier turns is left out",
    async () => {
      const underWay = (thought: string) => [
        hi,
        { ...called(["c1", "{}"]), reasoning_content: thought },
        result("c1", "done"),
      ];
      const earlier = (thought: string) => [
        ...underWay(thought),
        { role: "assistant", content: "so" },
        hi,
      ];
      expect(await read({ messages: earlier("a long thought") })).toBe(
        await read({ messages: earlier("x") }),
      );
      const long = await read({ messages: underWay("a long thought") });
      expect(long - (await read({ messages: underWay("x") }))).toBe("a long thought".length - 1);
    },
  ],
  emptyArguments: [
    "carried",
    async () => {
      const empty = await read({ messages: [hi, called(["c1", ""]), hi] });
      expect((await read({ messages: [hi, called(["c1", "{}"]), hi] })) - empty).toBe(2);
    },
  ],
  brokenArguments: [
    "carried: where the model's template writes JSON itself, as a JSON string",
    async () => {
      const whole = await read({ messages: [hi, called(["c1", '{"city":1}']), hi] });
      expect(await read({ messages: [hi, called(["c1", '{"city":12']), hi] })).toBe(whole);
    },
  ],
  severalCalls: [
    "carried: the answer itself has one call at most",
    async () => {
      const history = (first: string, second: string) => ({
        messages: [
          hi,
          called(["c1", `{"a":"${first}"}`], ["c2", `{"a":"${second}"}`]),
          result("c1", first),
          result("c2", second),
        ],
      });
      const short = await read(history("x", "x"));
      expect((await read(history("xxxx", "x"))) - short).toBe(6);
      expect((await read(history("x", "xxxx"))) - short).toBe(6);
      expect((await ask({ tools, tool_choice: "required" })).calls).toHaveLength(1);
    },
  ],
  toolWithoutParameters: [
    "converted: an object without properties",
    async () => {
      const bare = await read({ tools: [tool("time")] });
      expect(bare).toBe(await read({ tools: [tool("time", nothing)] }));
      expect(bare).toBeGreaterThan(await read({}));
    },
  ],
  strictTools: [
    "lost: a forced call keeps to its schema whatever it says",
    async () => {
      for (const strict of [true, false]) {
        const asked = {
          type: "function",
          function: { name: "weather", parameters: place, strict },
        };
        const { calls } = await ask({ tools: [asked], tool_choice: "required" });
        expect(calls).toEqual([{ name: "weather", ...placed }]);
      }
    },
  ],
  noTool: [
    "converted: the tools are not shown",
    async () => {
      expect(await read({ tools, tool_choice: "none" })).toBe(await read({}));
      expect(await read({ tools })).toBeGreaterThan(await read({}));
    },
  ],
  anyTool: [
    "carried: enforced by a grammar",
    async () => {
      expect((await ask({ tools })).calls).toEqual([]);
      const { calls } = await ask({ tools, tool_choice: "required" });
      expect(calls).toEqual([{ name: expect.stringMatching(/^(weather|time)$/u), ...placed }]);
    },
  ],
  oneTool: [
    "carried: enforced by a grammar",
    async () => {
      for (const name of ["weather", "time"]) {
        const choice = { type: "function", function: { name } };
        const { calls } = await ask({ tools, tool_choice: choice });
        expect(calls).toEqual([{ name, ...placed }]);
      }
    },
  ],
  parallelToolCalls: [
    "lost: one call a turn",
    async () => {
      const counts: number[] = [];
      for (const parallel of [true, false]) {
        const asked = { tools, parallel_tool_calls: parallel };
        counts.push(await read(asked));
        expect((await ask({ ...asked, tool_choice: "required" })).calls).toHaveLength(1);
      }
      expect(counts[0]).toBe(counts[1]);
    },
  ],
  loneSurrogates: [
    "converted: the replacement character",
    async () => {
      const user = (content: string) => ({ messages: [{ role: "user", content }] });
      expect(await read(user("a\ud800b"))).toBe(await read(user("a\ufffdb")));
      expect(await read(user("a\ufffdb"))).toBeGreaterThan(await read(user("ab")));
    },
  ],
};

describe("to the embedded engine", () => {
  it.each(engineTopics)("%s goes as docs/losses.md says", async (topic) => {
    const [cell, show] = shown[topic];
    expect(writeCell(embeddedLosses[topic])).toBe(cell);
    await show();
  });
});
