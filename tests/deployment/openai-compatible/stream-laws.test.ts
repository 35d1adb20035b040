import * as fc from "fast-check";
import { expect, test } from "vitest";
import { readAnswer } from "./read-answer.ts";

interface Call {
  readonly name: string;
  readonly written: string;
}

const call = fc.record({
  name: fc.constantFrom("read", "write", "a.b-c"),
  written: fc
    .dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1, depthSize: "small" }), {
      maxKeys: 3,
    })
    .map((value) => JSON.stringify(value)),
});

/** Pieces of every call, in the order of their call, the calls interleaved as `turns` says. */
function interleave(calls: readonly Call[], turns: readonly number[], piece: number): string {
  const left = calls.map((each) => [
    ...(each.written.match(new RegExp(`.{1,${piece}}`, "gsu")) ?? []),
  ]);
  const begun = new Set<number>();
  const chunks: unknown[] = [];
  const step = (index: number) => {
    const found = calls[index];
    if (found === undefined) return;
    if (!begun.has(index)) {
      // Engines begin their calls in the order of their index.
      for (let earlier = 0; earlier < index; earlier += 1) if (!begun.has(earlier)) step(earlier);
      begun.add(index);
      chunks.push({ index, id: `c${index}`, function: { name: found.name, arguments: "" } });
      return;
    }
    const text = left[index]?.shift();
    if (text !== undefined) chunks.push({ index, function: { arguments: text } });
  };
  for (const turn of turns) step(turn % calls.length);
  for (const [index] of calls.entries())
    do step(index);
    while ((left[index] ?? []).length > 0);
  const frames = chunks.map((each) => ({ choices: [{ index: 0, delta: { tool_calls: [each] } }] }));
  frames.push({
    choices: [{ index: 0, delta: { tool_calls: [] }, finish_reason: "tool_calls" } as never],
  });
  return frames.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
}

test("interleaved calls come out one after another, each with the arguments that were written", () => {
  fc.assert(
    fc.property(
      fc.array(call, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(), { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      (calls, turns, piece) => {
        const { events, ending } = readAnswer([Buffer.from(interleave(calls, turns, piece))]);
        expect(ending).toMatchObject({ type: "finished", finish: { reason: "tool-calls" } });
        const found: { name: string; written: string }[] = [];
        for (const event of events) {
          if (event.type === "tool-call-start") found.push({ name: event.name, written: "" });
          const last = found.at(-1);
          if (event.type === "tool-call-delta" && last !== undefined)
            last.written += event.arguments;
        }
        expect(found).toEqual(calls);
      },
    ),
  );
});

const member = fc.constantFrom(
  "choices",
  "delta",
  "message",
  "index",
  "finish_reason",
  "stop_reason",
  "content",
  "reasoning_content",
  "refusal",
  "tool_calls",
  "id",
  "function",
  "name",
  "arguments",
  "usage",
  "prompt_tokens",
  "completion_tokens",
  "prompt_tokens_details",
  "error",
  "text",
);
const { nonsense } = fc.letrec((tie) => ({
  nonsense: fc.oneof(
    { depthSize: "medium", withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, 0, 1, -1, "", "x", "{}", "stop", [], {}),
    fc.array(tie("nonsense"), { maxLength: 3 }),
    fc.dictionary(member, tie("nonsense"), { maxKeys: 5 }),
  ),
}));
const almostChunk = fc
  .record({ index: nonsense, delta: nonsense, finish_reason: nonsense }, { requiredKeys: [] })
  .map((choice) => ({ choices: [choice] }));

test("nonsense ends in a Failure or is passed over: order is kept, nothing else is thrown", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(nonsense, almostChunk), { maxLength: 6 }), (chunks) => {
      const text = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
      // The reader's double throws on illegal orders and on everything that is no Failure.
      const { ending } = readAnswer([Buffer.from(text)]);
      expect(ending).toHaveProperty("type");
      expect(
        readAnswer([Buffer.from(JSON.stringify(chunks[0] ?? null))], "application/json").ending,
      ).toHaveProperty("type");
    }),
    { numRuns: 400 },
  );
});
