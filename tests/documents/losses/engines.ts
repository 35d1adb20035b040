import type { EngineTopic } from "./tables/engine-losses.ts";
import type { WireFormatName } from "../../../src/formats/wire-format.ts";
import type { JsonRecord } from "../../cases/files.ts";

/** A request about a topic, and by the words of a cell what the engine then gets: to the letter, null for no member. */
export interface EngineExample {
  readonly format: WireFormatName;
  readonly send: JsonRecord;
  readonly cells: Readonly<Record<string, JsonRecord>>;
}

const hi = { role: "user", content: "Hi" };

function option(send: JsonRecord, cell = "carried", arrives = send): readonly EngineExample[] {
  return [{ format: "chat-completions", send, cells: { [cell]: arrives } }];
}

function tool(name: string): JsonRecord {
  return { type: "function", function: { name, parameters: { type: "object", properties: {} } } };
}

const tools = [tool("weather"), tool("time")];

function asked(strict: boolean): JsonRecord {
  const parameters = { type: "object", properties: {} };
  return { type: "function", function: { name: "weather", parameters, strict } };
}

function call(id: string, argumentsText: string): JsonRecord {
  return { id, type: "function", function: { name: "weather", arguments: argumentsText } };
}

function called(...calls: readonly JsonRecord[]): JsonRecord {
  return { role: "assistant", content: null, tool_calls: calls };
}

function result(id: string, content: string): JsonRecord {
  return { role: "tool", tool_call_id: id, content };
}

const several = {
  messages: [
    hi,
    called(call("c1", '{"a":1}'), call("c2", '{"a":2}')),
    result("c2", "two"),
    result("c1", "one"),
  ],
};
const reasoned = { role: "assistant", content: "So." };
const later = { messages: [hi, { role: "system", content: "Later." }, hi] };
const toRequired = { tools, tool_choice: "required" };
const toOne = { tools, tool_choice: { type: "function", function: { name: "time" } } };
const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max", "extreme"];

/** What the test asks of every dialect but about the effort of reasoning, which has a word for each word. */
export const engineExamples: Readonly<
  Record<Exclude<EngineTopic, "reasoningEffort">, readonly EngineExample[]>
> = {
  temperature: option({ temperature: 0.3 }),
  topP: [0.7, 0].map((topP) => ({
    format: "chat-completions",
    send: { top_p: topP },
    cells: {
      carried: { top_p: topP },
      "carried: 0 is sent as 0.000001, which asks for the same": { top_p: topP || 0.000001 },
    },
  })),
  topK: [7, 1, 0].map((top) => ({
    format: "messages",
    send: { top_k: top },
    cells: {
      "carried: from 1 on; 0 is not sent": { top_k: top === 0 ? null : top },
      lost: { top_k: null },
    },
  })),
  stopSequences: [
    {
      format: "chat-completions",
      send: { stop: ["END", "STOP"] },
      cells: {
        "carried: `stop`": { stop: ["END", "STOP"] },
        "carried: `stop`; the engine does not say that one ended the answer, so Messages says `end_turn`":
          { stop: ["END", "STOP"] },
      },
    },
  ],
  seed: option({ seed: 2 ** 40 }),
  presencePenalty: option({ presence_penalty: -1.5 }),
  frequencyPenalty: option({ frequency_penalty: 0.5 }),
  responseFormat: option(
    { response_format: { type: "json_object" } },
    "carried: `json_object` as `response_format`",
  ),
  laterSystem: option(later),
  orderOfParts: [
    {
      format: "messages",
      send: {
        messages: [
          hi,
          {
            role: "assistant",
            content: [
              { type: "text", text: "one " },
              { type: "tool_use", id: "c1", name: "weather", input: {} },
              { type: "text", text: "two" },
            ],
          },
        ],
      },
      cells: {
        "lost: one text, one reasoning, then the calls": {
          messages: [hi, { ...called(call("c1", "{}")), content: "one two" }],
        },
      },
    },
  ],
  earlierReasoning: [
    {
      format: "chat-completions",
      send: { messages: [hi, { ...reasoned, reasoning: "Because" }, hi] },
      cells: {
        "carried: `reasoning_content`, or `reasoning` by `TRIBUTARY_DEPLOYMENT_REASONING_FIELD`": {
          messages: [hi, { ...reasoned, reasoning_content: "Because" }, hi],
        },
        "carried: `reasoning`": { messages: [hi, { ...reasoned, reasoning: "Because" }, hi] },
      },
    },
  ],
  emptyArguments: [
    {
      format: "chat-completions",
      send: { messages: [hi, called(call("c1", ""))] },
      cells: {
        carried: { messages: [hi, called(call("c1", ""))] },
        "converted: `{}`": { messages: [hi, called(call("c1", "{}"))] },
      },
    },
  ],
  brokenArguments: ['{"city', "[1]", '"text"'].map((text) => ({
    format: "chat-completions",
    send: { messages: [hi, called(call("c1", text))] },
    cells: {
      carried: { messages: [hi, called(call("c1", text))] },
      "converted: an object with the text as `input`": {
        messages: [hi, called(call("c1", JSON.stringify({ input: text })))],
      },
    },
  })),
  severalCalls: option(several),
  toolWithoutParameters: option(
    { tools: [{ type: "function", function: { name: "time" } }] },
    "converted: an object without properties",
    { tools: [tool("time")] },
  ),
  strictTools: [true, false].map((strict) => ({
    format: "chat-completions",
    send: { tools: [asked(strict)] },
    cells: {
      "carried: `true`": { tools: [strict ? asked(true) : tool("weather")] },
      lost: { tools: [tool("weather")] },
    },
  })),
  noTool: [
    {
      format: "chat-completions",
      send: { tools, tool_choice: "none" },
      cells: {
        carried: { tools, tool_choice: "none" },
        "converted: the tools are not shown": { tools: null, tool_choice: null },
      },
    },
  ],
  anyTool: [
    {
      format: "chat-completions",
      send: toRequired,
      cells: {
        "carried: `required`": toRequired,
        "lost: the engine chooses": { tools, tool_choice: null },
      },
    },
  ],
  oneTool: [
    {
      format: "chat-completions",
      send: toOne,
      cells: {
        carried: toOne,
        "converted: only that tool is shown, and `required`": {
          tools: [tool("time")],
          tool_choice: "required",
        },
        "lost: only that tool is shown; the engine may answer in words": {
          tools: [tool("time")],
          tool_choice: null,
        },
      },
    },
  ],
  parallelToolCalls: [true, false].map((withTools) => {
    const arrives = { parallel_tool_calls: withTools ? false : null };
    return {
      format: "chat-completions",
      send: { ...(withTools ? { tools } : {}), parallel_tool_calls: false },
      cells: {
        "carried: where there are tools": arrives,
        "carried: where there are tools; the engine may make several all the same": arrives,
      },
    };
  }),
  loneSurrogates: option(
    { messages: [{ role: "user", content: "a\ud800b" }] },
    "converted: the replacement character",
    { messages: [{ role: "user", content: "a\ufffdb" }] },
  ),
};

/** What the words of a cell say about the effort of reasoning, and a word that no engine knows. */
export function effortExamples(cell: string): readonly EngineExample[] {
  const told = new Map<string, string>();
  for (const [, asked = "", renamed] of cell.matchAll(/`(\w+)`(?: as `(\w+)`)?/gu))
    told.set(asked, renamed ?? asked);
  return efforts.map((asked) => ({
    format: "chat-completions",
    send: { reasoning_effort: asked },
    cells: { [cell]: { reasoning_effort: told.get(asked) ?? null } },
  }));
}
