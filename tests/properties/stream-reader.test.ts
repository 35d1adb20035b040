import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { openContext, testReasoning } from "../cases/context.ts";
import { plainRequest, streamOf } from "../cases/generations.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import { joinCustomCalls, readers, tellable } from "../reader/readers.ts";
import {
  arbitraryGeneration,
  isCustomCall,
  offeredTools,
  stepsOf,
} from "./arbitrary-generation.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];

// For example: text-start, text-delta "Hel", text-delta "lo", text-end, finish. A reader that shares no code with the encoder has the frames
// of them as one text "Hello" and the finish.
describe.each(formats)("a %s stream", (format) => {
  const request = plainRequest(format, offeredTools[format]);

  it("tells an independent reader what the generation said", () => {
    fc.assert(
      fc.property(arbitraryGeneration, fc.array(fc.nat({ max: 20 })), (generation, keepalives) => {
        const reading = readers[format](streamOf(format, request, stepsOf(generation, keepalives)));
        const wanted = tellable(format, generation, isCustomCall);
        expect(joinCustomCalls(reading.events, isCustomCall)).toEqual(wanted.events);
        expect(reading.finish).toEqual(wanted.finish);
      }),
      { numRuns: 300 },
    );
  });

  it("is the same in whichever batches the events come", () => {
    fc.assert(
      fc.property(arbitraryGeneration, fc.array(fc.nat({ max: 20 })), (generation, cuts) => {
        const encoder = wireFormats[format].openEncoder(
          openContext(wireFormats[format].parseRequest(request, testReasoning).echo),
        );
        const places = [...new Set([0, ...cuts, Infinity])].toSorted((left, right) => left - right);
        let frames = encoder.open();
        places.forEach((place, index) => {
          frames += encoder.encode(generation.events.slice(place, places[index + 1] ?? place));
        });
        frames += encoder.finish(generation.finish);
        expect(frames).toBe(streamOf(format, request, stepsOf(generation)));
      }),
      { numRuns: 100 },
    );
  });
});
