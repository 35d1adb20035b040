import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AssistantPart } from "../../src/conversation/conversation.ts";
import { openGenerationCollector } from "../../src/conversation/collect-generation.ts";
import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { testReasoning } from "../cases/context.ts";
import { isRecord, type JsonRecord } from "../cases/files.ts";
import { bodyOf, plainRequest } from "../cases/generations.ts";
import { arbitraryGeneration, offeredTools, stepsOf } from "./arbitrary-generation.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];
const userSays = { role: "user", content: "Hello" };

/** The history that an application writes: what the user said, then the answer as it came. */
function withAnswer(format: WireFormatName, body: unknown): JsonRecord {
  // What is sent is JSON text, so that this is what comes back.
  const answer: unknown = JSON.parse(JSON.stringify(body));
  if (!isRecord(answer)) throw new Error("no body");
  if (format === "responses") {
    if (!Array.isArray(answer["output"])) throw new Error("no output");
    return { input: [userSays, ...answer["output"]] };
  }
  if (format === "messages") {
    return { messages: [userSays, { role: "assistant", content: answer["content"] }] };
  }
  const choices: unknown = answer["choices"];
  const choice: unknown = Array.isArray(choices) ? choices[0] : null;
  return { messages: [userSays, isRecord(choice) ? choice["message"] : null] };
}

/** The parts of an answer as far as a format can tell them: Chat Completions has one reasoning, one text, then calls. */
function tellableParts(
  format: WireFormatName,
  events: readonly GenerationEvent[],
): readonly AssistantPart[] {
  const collector = openGenerationCollector();
  collector.add(events);
  const usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  const { parts } = collector.finish({ reason: "stop", stopSequence: null, usage });
  const canonical = parts.map((part) =>
    part.type === "tool-call"
      ? { ...part, arguments: JSON.stringify(JSON.parse(part.arguments)) }
      : part,
  );
  if (format === "messages") return joinTexts(canonical);
  if (format === "responses") return canonical;
  const join = (type: "reasoning" | "text"): readonly AssistantPart[] => {
    const text = parts.flatMap((part) => (part.type === type ? [part.text] : [])).join("");
    return text === "" ? [] : [{ type, text }];
  };
  return [
    ...join("reasoning"),
    ...join("text"),
    ...canonical.filter((part) => part.type === "tool-call"),
  ];
}

function joinTexts(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const joined: AssistantPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.type === "text" && last?.type === "text") {
      joined[joined.length - 1] = { type: "text", text: last.text + part.text };
    } else joined.push(part);
  }
  return joined;
}

// For example: the service answers with a text "Let me look." and a call of `weather`. The next request carries that answer in its history,
// and the conversation read from it has the same two parts.
describe("an answer that comes back in the history", () => {
  it.each(formats)("is what the model said, %s", (format) => {
    const request = plainRequest(format, offeredTools[format]);
    const whole = arbitraryGeneration.filter(
      ({ finish }) => finish.reason !== "length" && finish.reason !== "content-filter",
    );
    fc.assert(
      fc.property(whole, (made) => {
        const history = withAnswer(format, bodyOf(format, request, stepsOf(made)));
        const body = { ...history, ...offeredTools[format] };
        const { conversation } = wireFormats[format].parseRequest(body, testReasoning);
        const wanted = tellableParts(format, made.events);
        expect(conversation.turns).toEqual([
          { role: "user", text: "Hello" },
          ...(wanted.length === 0 ? [] : [{ role: "assistant", parts: wanted }]),
        ]);
      }),
      { numRuns: 300 },
    );
  });
});
