import * as fc from "fast-check";
import type { Finish, GenerationEvent } from "../../src/conversation/generation-event.ts";
import type { Step } from "../cases/generations.ts";
import type { JsonRecord } from "../cases/files.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";

/** A generation made by chance, with its events cut into batches by chance. */
export interface ArbitraryGeneration {
  readonly events: readonly GenerationEvent[];
  readonly finish: Finish;
}

const parameters = { type: "object", properties: { city: { type: "string" } } };
const functionNames = ["weather", "mcp__git__log", "files__read"] as const;
const customName = "run";

/** What every format offers to these generations: three functions, one in a namespace, and a custom tool. */
export const offeredTools: Readonly<Record<WireFormatName, JsonRecord>> = {
  "chat-completions": {
    tools: [
      ...functionNames.map((name) => ({ type: "function", function: { name, parameters } })),
      { type: "custom", custom: { name: customName } },
    ],
  },
  responses: {
    include: ["reasoning.encrypted_content"],
    tools: [
      { type: "function", name: "weather", parameters, strict: false },
      { type: "function", name: "mcp__git__log", parameters, strict: false },
      {
        type: "namespace",
        name: "files",
        description: "",
        tools: [{ type: "function", name: "read", parameters, strict: false }],
      },
      { type: "custom", name: customName },
    ],
  },
  messages: {
    tools: [...functionNames, customName].map((name) => ({ name, input_schema: parameters })),
  },
};

/** Whether a call's arguments travel as raw text where the format has custom tools. */
export function isCustomCall(name: string): boolean {
  return name === customName;
}

const anyText = fc.string({ unit: "binary", minLength: 1, maxLength: 12 });
const halfOfPair = fc.constantFrom("\ud83d", "\ude00");
const piece = fc.oneof(
  { weight: 8, arbitrary: anyText },
  {
    weight: 2,
    arbitrary: fc.constantFrom("\n\n", "data: x\n\n", "\r\n", "\u2028", '"\\', "[DONE]"),
  },
  { weight: 1, arbitrary: halfOfPair },
);
const pieces = fc.array(piece, { minLength: 1, maxLength: 4 });

const said = fc
  .tuple(fc.constantFrom("text", "reasoning"), pieces)
  .map(([kind, texts]): readonly GenerationEvent[] => {
    const part = kind === "text" ? "text" : "reasoning";
    return [
      { type: `${part}-start` },
      ...texts.map((text) => ({ type: `${part}-delta` as const, text })),
      { type: `${part}-end` },
    ];
  });

/** A string cut into up to four pieces, none of them empty. */
function cut(text: string): fc.Arbitrary<readonly string[]> {
  return fc
    .array(fc.nat({ max: text.length }), { maxLength: 3 })
    .map((places) => [0, ...places.toSorted((left, right) => left - right), text.length])
    .map((places) => places.slice(1).map((place, index) => text.slice(places[index], place)))
    .map((parts) => parts.filter((part) => part !== ""));
}

const called = fc
  .oneof(
    fc.tuple(
      fc.constantFrom(...functionNames),
      fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
    ),
    fc.tuple(fc.constant(customName), fc.record({ input: fc.string({ unit: "binary" }) })),
  )
  .chain(([name, value]) => cut(JSON.stringify(value)).map((texts) => ({ name, parts: texts })));

const parts = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: said.map((events) => ({ events })) },
    { weight: 1, arbitrary: called.map((call) => ({ call })) },
  ),
  { maxLength: 5 },
);

const tokens = fc.nat({ max: 100_000 });

/** The same pieces without their last characters. */
function shortened(pieces: readonly string[], characters: number): readonly string[] {
  const kept: string[] = [];
  let left = characters;
  for (const text of pieces) {
    if (left > 0) kept.push(text.slice(0, left));
    left -= text.length;
  }
  return kept;
}

/** Any generation that ends well. An answer that was cut in a call has half of its arguments. */
export const arbitraryGeneration: fc.Arbitrary<ArbitraryGeneration> = fc
  .record({
    list: parts,
    input: tokens,
    cached: tokens,
    output: tokens,
    reasoned: tokens,
    ending: fc.constantFrom("whole", "length", "content-filter"),
    cutAt: fc.nat({ max: 40 }),
  })
  .map(({ list, input, cached, output, reasoned, ending, cutAt }) => {
    const events = list.flatMap((part, index): readonly GenerationEvent[] => {
      if ("events" in part) return part.events;
      const isCut = ending !== "whole" && index === list.length - 1;
      const texts = isCut ? shortened(part.call.parts, cutAt) : part.call.parts;
      return [
        { type: "tool-call-start", id: `call_${index}`, name: part.call.name },
        ...texts.map((text) => ({ type: "tool-call-delta" as const, arguments: text })),
        { type: "tool-call-end" },
      ];
    });
    const hasCalls = events.some((event) => event.type === "tool-call-start");
    const whole = hasCalls ? "tool-calls" : "stop";
    return {
      events,
      finish: {
        reason: ending === "length" || ending === "content-filter" ? ending : whole,
        stopSequence: null,
        usage: {
          inputTokens: input + cached,
          cachedInputTokens: cached,
          outputTokens: output + reasoned,
          reasoningTokens: reasoned,
        },
      },
    };
  });

/** The steps of a generation, with a keepalive wherever `keepalives` names a place. */
export function stepsOf(
  generation: ArbitraryGeneration,
  keepalives: readonly number[] = [],
): readonly Step[] {
  const steps: Step[] = [];
  generation.events.forEach((event, index) => {
    if (keepalives.includes(index)) steps.push({ type: "keepalive" });
    steps.push(event);
  });
  steps.push({ type: "finish", ...generation.finish });
  return steps;
}
