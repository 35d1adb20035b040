import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  AssistantPart,
  Conversation,
  GenerationOptions,
  JsonObject,
  Tool,
  ToolChoice,
  Turn,
} from "../../src/conversation/conversation.ts";
import { joinTurns } from "../../src/conversation/join-turns.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { openReasoningSeal } from "../../src/seal/reasoning-seal.ts";
import { formatLosses, type LossTopic } from "../documents/losses/formats.ts";
import { valuesAt } from "../documents/losses/places.ts";
import { type Said, spellConversation } from "./spell-conversation.ts";

const seal = openReasoningSeal([{ id: "k1", secret: randomBytes(32) }], "account");

const text = fc.oneof(fc.string({ maxLength: 8 }), fc.string({ unit: "binary", maxLength: 8 }));
const someText = text.filter((one) => one !== "");
const json = fc.jsonValue({ maxDepth: 2 });

/** As JSON.parse makes it, whatever JavaScript has besides. */
function asJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

const input = fc.dictionary(fc.string({ maxLength: 4 }), json, { maxKeys: 3 }).map(asJson);
const name = fc.stringMatching(/^[A-Za-z0-9_.-]{1,12}$/u);

/** An answer with its calls, and the results of these in some order. */
const answer = fc
  .record({
    reasoning: fc.option(someText),
    said: fc.option(someText),
    calls: fc.array(fc.record({ name, input, result: text }), { maxLength: 3 }),
    id: fc.uuid(),
    shuffle: fc.array(fc.nat({ max: 9 }), { minLength: 3, maxLength: 3 }),
  })
  .filter(({ said, calls }) => said !== null || calls.length > 0)
  .map(({ reasoning, said, calls, id, shuffle }): readonly Turn[] => {
    const parts: AssistantPart[] = [
      ...(reasoning === null ? [] : [{ type: "reasoning" as const, text: reasoning }]),
      ...(said === null ? [] : [{ type: "text" as const, text: said }]),
      ...calls.map((call, index) => ({
        type: "tool-call" as const,
        id: `call_${id}_${index}`,
        name: call.name,
        arguments: JSON.stringify(call.input),
      })),
    ];
    const results = calls.map((call, index) => ({
      role: "tool" as const,
      callId: `call_${id}_${index}`,
      text: call.result,
      place: shuffle[index] ?? 0,
    }));
    return [
      { role: "assistant", parts },
      ...results
        .toSorted((left, right) => left.place - right.place)
        .map(({ place: _place, ...result }) => result),
    ];
  });

const turns: fc.Arbitrary<readonly Turn[]> = fc
  .array(
    fc.oneof(
      {
        weight: 1,
        arbitrary: someText.map((one): readonly Turn[] => [{ role: "system", text: one }]),
      },
      { weight: 2, arbitrary: text.map((one): readonly Turn[] => [{ role: "user", text: one }]) },
      // A user's word between answers: two in a row would be one in every format.
      {
        weight: 4,
        arbitrary: fc
          .tuple(text, answer)
          .map(([one, turn]): readonly Turn[] => [{ role: "user", text: one }, ...turn]),
      },
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((all) => joinTurns(all.flat()))
  // A system text alone is no input in the formats that have a place of its own for it.
  .filter((all) => all.some(({ role }) => role !== "system"));

const tool: fc.Arbitrary<Tool> = fc.record(
  {
    name,
    description: fc.option(text),
    parameters: fc.option(input as fc.Arbitrary<JsonObject>),
    strict: fc.constant(true as const),
  },
  { requiredKeys: ["name", "description", "parameters"] },
);

const offer: fc.Arbitrary<Omit<Conversation, "turns">> = fc
  .tuple(
    fc.uniqueArray(tool, { maxLength: 3, selector: (one) => one.name }),
    fc.constantFrom("auto", "none", "required", "tool"),
    fc.option(fc.boolean()),
  )
  .map(([tools, kind, parallelToolCalls]) => {
    const [first] = tools;
    let toolChoice: ToolChoice = { type: "auto" };
    if (first !== undefined)
      toolChoice = kind === "tool" ? { type: kind, name: first.name } : { type: kind };
    return { tools, toolChoice, parallelToolCalls };
  });

/** JSON has one zero. */
function fraction(max: number): fc.Arbitrary<number> {
  return fc.double({ min: 0, max, noNaN: true }).map((number) => number + 0);
}

const options: fc.Arbitrary<GenerationOptions> = fc
  .record({ temperature: fc.option(fraction(2)), topP: fc.option(fraction(1)) })
  .map((some) => ({
    ...some,
    topK: null,
    stopSequences: [],
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    reasoningEffort: null,
    responseFormat: "text",
  }));

const said: fc.Arbitrary<Said> = fc.record({
  conversation: fc.tuple(turns, offer).map(([spoken, more]) => ({ turns: spoken, ...more })),
  options,
  model: someText,
  stream: fc.boolean(),
  outputTokens: fc.option(fc.integer({ min: 1, max: 70_000 })),
});

/** What the service understands of a body, once it has been JSON text. */
function understand(format: WireFormatName, body: unknown): Said {
  const parsed = wireFormats[format].parseRequest(asJson(body) as JsonObject, seal);
  const { model } = parsed.echo as { readonly model: string };
  return {
    conversation: parsed.conversation,
    options: parsed.options,
    model,
    stream: parsed.stream,
    outputTokens: parsed.outputTokensRequested,
  };
}

/** The rows that the law is about; what only one format can say has no way through the others. */
const lawful: readonly LossTopic[] = [
  "user-text",
  "system",
  "assistant-text",
  "reasoning",
  "tool-calls",
  "tool-input",
  "tool-results",
  "tools",
  "tool-strict",
  "tool-choice",
  "tool-choice-none",
  "tool-choice-one",
  "parallel-tool-calls",
  "temperature",
  "top-p",
  "output-allowance",
  "stream",
  "model",
];

function isSaid(format: WireFormatName, topic: LossTopic, body: unknown): boolean {
  const fields = formatLosses[format][topic]?.fields ?? [];
  return fields.some((field) => valuesAt(body, field).length > 0);
}

// For example: system "Be brief.", user "Weather?", a call of `weather` and its result. Spelled in Messages, read by the service, spelled in
// Responses from what was read, read again: the two conversations are equal.
describe("a conversation", () => {
  it("is the same after Chat Completions, Messages, Responses and Chat Completions again", () => {
    const way: readonly WireFormatName[] = [
      "chat-completions",
      "messages",
      "responses",
      "chat-completions",
    ];
    const seen = new Map(way.map((format) => [format, new Set<string>()]));
    fc.assert(
      fc.property(said, (first) => {
        const bodies: unknown[] = [];
        let now = first;
        for (const format of way) {
          const body = spellConversation(format, now, seal);
          bodies.push(body);
          now = understand(format, body);
          expect(now, format).toEqual(first);
          for (const topic of lawful) if (isSaid(format, topic, body)) seen.get(format)?.add(topic);
        }
        expect(bodies.at(-1)).toEqual(bodies[0]);
      }),
      { numRuns: 300 },
    );
    // A law about what never occurs would say nothing.
    for (const [format, topics] of seen) {
      const wanted = lawful.filter((topic) => Object.hasOwn(formatLosses[format], topic));
      expect([...topics].toSorted(), format).toEqual(wanted.toSorted());
    }
  });

  it("holds in it whatever docs/losses.md says that all three formats carry", () => {
    const [chat, ...others] = Object.values(formatLosses);
    const carriedByAll = Object.entries(chat ?? {})
      .filter(([, { fate }]) => fate === "carried")
      .map(([topic]) => topic)
      .filter((topic) => others.every((losses) => losses[topic]?.fate === "carried"));
    expect(carriedByAll.length).toBeGreaterThan(6);
    expect(lawful).toEqual(expect.arrayContaining(carriedByAll));
  });
});
