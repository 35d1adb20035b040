import { describe, expect, it } from "vitest";
import { caseFiles, isRecord, readText } from "../cases/files.ts";
import { eventsOf, finishOf, readSteps, requestOf } from "../cases/generations.ts";
import { joinCustomCalls, readers, tellable } from "./readers.ts";

const streams = caseFiles("generations").filter((file) => file.kind === "stream");

describe("the reader finds the events of a case in its golden frames", () => {
  for (const file of streams) {
    const { caseId, format } = file;
    if (format === null) continue;
    it(`${caseId}, ${format}`, () => {
      const steps = readSteps(caseId);
      const isCustom = (name: string): boolean => customNames(caseId).includes(name);
      const reading = readers[format](readText(file));
      const wanted = tellable(
        format,
        { events: eventsOf(steps), finish: finishOf(steps) },
        isCustom,
      );
      const isCut = finishOf(steps) === null;
      expect(joinCustomCalls(reading.events, isCustom)).toEqual(
        isCut ? [...wanted.events, ...endOfOpenPart(wanted.events)] : wanted.events,
      );
      expect(reading.finish).toEqual(
        caseId === "answer-no-usage" ? { ...wanted.finish, usage: null } : wanted.finish,
      );
      expect(reading.failure === null).toBe(wanted.finish !== null);
      expect(reading.comments).toBe(steps.filter((step) => step.type === "keepalive").length);
    });
  }
});

describe("the reader refuses a stream that says what it must not", () => {
  for (const file of streams) {
    const { caseId, format } = file;
    if (format === null || caseId === "answer-no-usage") continue;
    const frames = readText(file).split(/(?<=\n\n)/);
    it(`${caseId}, ${format}: any frame missing, or the last one twice`, () => {
      const whole = frames.join("");
      for (let index = 0; index < frames.length; index += 1) {
        if (mayBeMissing(frames[index] ?? "", caseId)) continue;
        const without = frames.filter((_, other) => other !== index).join("");
        expect(() => different(readers[format], whole, without), frames[index]).toThrow();
      }
      expect(() => readers[format](whole + (frames.at(-1) ?? ""))).toThrow();
      expect(() => readers[format](whole.slice(0, -1))).toThrow();
    });
  }
});

/** Throws as the reader throws, and where it reads something else than in the whole stream. */
function different(read: (stream: string) => unknown, whole: string, without: string): void {
  expect(read(without)).toEqual(read(whole));
}

/** A ping says nothing; and an answer that fails may do so before or after the end of a block. */
function mayBeMissing(frame: string, caseId: string): boolean {
  if (frame.startsWith("event: content_block_stop")) return finishOf(readSteps(caseId)) === null;
  return frame.startsWith("event: ping");
}

function endOfOpenPart(events: ReturnType<typeof eventsOf>): ReturnType<typeof eventsOf> {
  const last = events.at(-1)?.type;
  if (last === undefined || last.endsWith("-end")) return [];
  if (last.startsWith("text")) return [{ type: "text-end" }];
  return [{ type: last.startsWith("reasoning") ? "reasoning-end" : "tool-call-end" }];
}

function customNames(caseId: string): readonly string[] {
  const tools = requestOf(caseId, "responses")["tools"];
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool: unknown) =>
    isRecord(tool) && tool["type"] === "custom" ? [String(tool["name"])] : [],
  );
}
