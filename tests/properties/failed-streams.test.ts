import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import { failureKinds, type FailureCode } from "../../src/failure.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { plainRequest, streamOf, type Step } from "../cases/generations.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import { joinCustomCalls, readers, tellable } from "../reader/readers.ts";
import { arbitraryGeneration, isCustomCall, offeredTools } from "./arbitrary-generation.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(failureKinds, code);
}

const codes = Object.keys(failureKinds).filter(isFailureCode);
const message = "What went wrong, in words.";

/** What a client is told of a failure: the code of the OpenAI shape, or the type of the Messages shape. */
function told(format: WireFormatName, code: FailureCode): string {
  const kind = failureKinds[code];
  if (format === "messages") return kind.messagesType;
  if (format === "chat-completions") return kind.openaiCode;
  // The codes that agents act on, after the wire contract.
  if (code === "input_too_large") return "context_length_exceeded";
  if (["overloaded", "rate_limited", "too_many_concurrent"].includes(code))
    return "rate_limit_exceeded";
  return String(kind.status).startsWith("4") ? "invalid_prompt" : "server_error";
}

/** Events up to some place, with the part that is open there ended, as the reader ends it. */
function endOpenPart(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
  const last = events.at(-1);
  if (last === undefined || last.type.endsWith("-end")) return events;
  if (last.type.startsWith("text")) return [...events, { type: "text-end" }];
  if (last.type.startsWith("reasoning")) return [...events, { type: "reasoning-end" }];
  return [...events, { type: "tool-call-end" }];
}

describe.each(formats)("a %s stream that fails", (format) => {
  const request = plainRequest(format, offeredTools[format]);

  it("tells what was said before, then the failure, and nothing more", () => {
    const everything = fc.tuple(
      arbitraryGeneration,
      fc.nat({ max: 30 }),
      fc.constantFrom(...codes),
    );
    fc.assert(
      fc.property(everything, ([generation, place, code]) => {
        const said = generation.events.slice(0, place);
        const steps: Step[] = [...said, { type: "failure", code, message }];
        const reading = readers[format](streamOf(format, request, steps));
        expect(reading.finish).toBeNull();
        expect(reading.failure).toEqual({ code: told(format, code), message });
        const wanted = tellable(format, { events: endOpenPart(said), finish: null }, isCustomCall);
        // An input that was broken off in its wrapping is told as far as it was certain.
        const isOpenCustom = said.findLast((event) => event.type === "tool-call-start");
        if (isOpenCustom !== undefined && isCustomCall(isOpenCustom.name)) return;
        const closed = tellable(format, { events: reading.events, finish: null }, () => false);
        expect(joinCustomCalls(closed.events, isCustomCall)).toEqual(
          withoutEmpty(format, wanted.events),
        );
      }),
      { numRuns: 300 },
    );
  });

  it.each(codes)("keeps a cause to itself: %s", (code) => {
    const frames = streamOf(format, request, [{ type: "failure", code, message }]);
    const last = framesOf(readFrames(frames)).at(-1);
    expect(last?.data).toContain(message);
    expect(frames).not.toContain("[DONE]");
    expect(frames).not.toMatch(/stack|node_modules|\.ts\b/u);
  });
});

/** Chat Completions has no word for a part in which nothing was said yet. */
function withoutEmpty(
  format: WireFormatName,
  events: readonly GenerationEvent[],
): readonly GenerationEvent[] {
  if (format !== "chat-completions") return events;
  return events.filter((event, index) => {
    const next = events[index + 1]?.type;
    const previous = events[index - 1]?.type;
    if (event.type === "text-start") return next !== "text-end";
    if (event.type === "reasoning-start") return next !== "reasoning-end";
    if (event.type === "text-end") return previous !== "text-start";
    return event.type !== "reasoning-end" || previous !== "reasoning-start";
  });
}
