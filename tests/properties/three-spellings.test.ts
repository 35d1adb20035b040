import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Turn } from "../../src/conversation/conversation.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { testReasoning } from "../cases/context.ts";
import type { JsonRecord } from "../cases/files.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];

/** Something that every format can say. */
type Saying =
  | { readonly kind: "system"; readonly text: string }
  | { readonly kind: "user"; readonly text: readonly string[] }
  | {
      readonly kind: "assistant";
      readonly reasoning: string | null;
      readonly text: string | null;
      readonly calls: readonly Call[];
    };

interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: JsonRecord;
  readonly result: readonly string[];
}

const words = fc.string({ unit: "binary", minLength: 1, maxLength: 10 });
const call = fc.record({
  name: fc.constantFrom("weather", "mcp__git__log"),
  input: fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
  result: fc.array(words, { maxLength: 2 }),
});

const saying: fc.Arbitrary<Saying> = fc.oneof(
  fc.record({ kind: fc.constant("system" as const), text: words }),
  fc.record({
    kind: fc.constant("user" as const),
    text: fc.array(words, { minLength: 1, maxLength: 3 }),
  }),
  fc
    .record({
      reasoning: fc.option(words),
      text: fc.option(words),
      calls: fc.array(call, { maxLength: 3 }),
      number: fc.uuid(),
    })
    .filter(({ text, calls }) => text !== null || calls.length > 0)
    .map(({ number, calls, ...said }) => ({
      kind: "assistant" as const,
      ...said,
      // JSON has one zero, and a copy of what it carries has no other.
      calls: calls.map((one, index) => ({
        ...one,
        id: `call_${number}_${index}`,
        input: JSON.parse(JSON.stringify(one.input)) as JsonRecord,
      })),
    })),
);

function chatMessages(said: Saying): readonly JsonRecord[] {
  if (said.kind === "system") return [{ role: "system", content: said.text }];
  if (said.kind === "user") {
    return [{ role: "user", content: said.text.map((text) => ({ type: "text", text })) }];
  }
  const calls = said.calls.map(({ id, name, input }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  return [
    {
      role: "assistant",
      content: said.text,
      ...(said.reasoning === null ? {} : { reasoning_content: said.reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
    ...said.calls.map(({ id, result }) => ({
      role: "tool",
      tool_call_id: id,
      content: result.map((text) => ({ type: "text", text })),
    })),
  ];
}

function responsesItems(said: Saying): readonly JsonRecord[] {
  if (said.kind === "system") return [{ role: "developer", content: said.text }];
  if (said.kind === "user") {
    const content = said.text.map((text) => ({ type: "input_text", text }));
    return [{ type: "message", role: "user", content }];
  }
  const { reasoning, text, calls } = said;
  return [
    ...(reasoning === null
      ? []
      : [{ type: "reasoning", id: "rs", summary: [], encrypted_content: `sealed:${reasoning}` }]),
    ...(text === null ? [] : [{ role: "assistant", content: [{ type: "output_text", text }] }]),
    ...calls.map(({ id, name, input }) => ({
      ...{ type: "function_call", call_id: id, name },
      arguments: JSON.stringify(input),
    })),
    ...calls.map(({ id, result }) => ({
      ...{ type: "function_call_output", call_id: id },
      output: result.map((one) => ({ type: "input_text", text: one })),
    })),
  ];
}

function messagesMessages(said: Saying): readonly JsonRecord[] {
  if (said.kind === "system") return [{ role: "system", content: said.text }];
  if (said.kind === "user") {
    return [{ role: "user", content: said.text.map((text) => ({ type: "text", text })) }];
  }
  const { reasoning, text, calls } = said;
  const results = calls.map(({ id, result }) => ({
    type: "tool_result",
    tool_use_id: id,
    content: result.map((one) => ({ type: "text", text: one })),
  }));
  return [
    {
      role: "assistant",
      content: [
        ...(reasoning === null
          ? []
          : [{ type: "thinking", thinking: reasoning, signature: `signed:${reasoning}` }]),
        ...(text === null ? [] : [{ type: "text", text }]),
        ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
      ],
    },
    ...(results.length === 0 ? [] : [{ role: "user", content: results }]),
  ];
}

function spell(format: WireFormatName, sayings: readonly Saying[]): JsonRecord {
  if (format === "responses") return { input: sayings.flatMap(responsesItems) };
  const spellOne = format === "messages" ? messagesMessages : chatMessages;
  return { messages: sayings.flatMap(spellOne) };
}

/** The turns that the sayings are, worked out without the formats. */
function turnsOf(sayings: readonly Saying[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const said of sayings) {
    const last = turns.at(-1);
    if (said.kind === "system") {
      const leads = turns.length === 0 || (turns.length === 1 && last?.role === "system");
      if (leads && last?.role === "system") {
        turns[0] = { role: "system", text: `${last.text}\n\n${said.text}` };
      } else {
        turns.push({ role: "system", text: said.text });
      }
    } else if (said.kind === "user") {
      turns.push({ role: "user", text: said.text.join("") });
    } else {
      const parts = [
        ...(said.reasoning === null ? [] : [{ type: "reasoning" as const, text: said.reasoning }]),
        ...(said.text === null ? [] : [{ type: "text" as const, text: said.text }]),
        ...said.calls.map(({ id, name, input }) => ({
          ...{ type: "tool-call" as const, id, name },
          arguments: JSON.stringify(input),
        })),
      ];
      if (last?.role === "assistant") {
        turns[turns.length - 1] = { role: "assistant", parts: [...last.parts, ...parts] };
      } else {
        turns.push({ role: "assistant", parts });
      }
      for (const { id, result } of said.calls) {
        turns.push({ role: "tool", callId: id, text: result.join("\n") });
      }
    }
  }
  return turns;
}

// For example: user "Hi" is `{"role":"user","content":"Hi"}` in Chat Completions and in Messages, and `"input":"Hi"` in Responses; the
// service reads one conversation of one turn from all of them.
describe("one conversation", () => {
  it.each(formats)("is read out of %s as it was said", (format) => {
    fc.assert(
      fc.property(fc.array(saying, { minLength: 1, maxLength: 6 }), (sayings) => {
        const { conversation } = wireFormats[format].parseRequest(
          spell(format, sayings),
          testReasoning,
        );
        expect(conversation).toEqual({
          turns: turnsOf(sayings),
          tools: [],
          toolChoice: { type: "auto" },
          parallelToolCalls: null,
        });
      }),
      { numRuns: 300 },
    );
  });
});
