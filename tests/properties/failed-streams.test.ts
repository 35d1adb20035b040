import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import { failureKinds, type FailureCode } from "../../src/failure.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { plainRequest, streamOf, type Step } from "../cases/generations.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import { joinCustomCalls, readers, tellable } from "../reader/readers.ts";
import { errorContract } from "../wire/error-contract.ts";
import { arbitraryGeneration, isCustomCall, offeredTools } from "./arbitrary-generation.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(failureKinds, code);
}

const codes = Object.keys(failureKinds).filter(isFailureCode);
const message = "What went wrong, in words.";

/** What names the failure at the end of a stream, by the contract: the code of OpenAI's shapes, the type of Messages. */
function nameOnTheWire(format: WireFormatName, code: FailureCode): string {
  const row = errorContract[code];
  if (format === "messages") return row.messages;
  return format === "responses" ? row.responseFailed : row.openai[1];
}

/** Events up to some place, with the part that is open there ended, as the reader ends it. */
function endOpenPart(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
  const last = events.at(-1);
  if (last === undefined || last.type.endsWith("-end")) return events;
  if (last.type.startsWith("text")) return [...events, { type: "text-end" }];
  if (last.type.startsWith("reasoning")) return [...events, { type: "reasoning-end" }];
  return [...events, { type: "tool-call-end" }];
}

// For example: a text "It rains", of which "It ra" was sent, then `overloaded`. A reader of the stream of Responses has a text "It ra" that
// is whole, no finish, and the failure `rate_limit_exceeded` with its message; nothing stands behind that.
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
        expect(reading.failure).toEqual({ code: nameOnTheWire(format, code), message });
        const wanted = withoutEmpty(
          format,
          tellable(format, { events: endOpenPart(said), finish: null }, isCustomCall).events,
        );
        const read = joinCustomCalls(
          tellable(format, { events: reading.events, finish: null }, () => false).events,
          isCustomCall,
        );
        expectAsFarAsCertain(read, wanted, said.at(-1));
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

/**
 * Equal, except where the failure came inside of a custom call: its input travels in a wrapping of JSON, of which the end may be missing.
 * Then everything before that input is equal, and of the input itself the stream has its beginning.
 */
function expectAsFarAsCertain(
  read: readonly GenerationEvent[],
  wanted: readonly GenerationEvent[],
  last: GenerationEvent | undefined,
): void {
  const start = wanted.findLastIndex((event) => event.type === "tool-call-start");
  const call = wanted[start];
  const breaksOff = last !== undefined && /^tool-call-(?:start|delta)$/.test(last.type);
  if (!breaksOff || call?.type !== "tool-call-start" || !isCustomCall(call.name)) {
    expect(read).toEqual(wanted);
    return;
  }
  expect(read.slice(0, start + 1)).toEqual(wanted.slice(0, start + 1));
  expect(inputOf(wanted.slice(start + 1)).startsWith(inputOf(read.slice(start + 1)))).toBe(true);
}

function inputOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === "tool-call-delta" ? event.arguments : "")).join("");
}

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
