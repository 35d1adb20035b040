import { describe, expect, it } from "vitest";
import { openEventOrderCheck } from "../../src/conversation/check-event-order.ts";
import { readFrames, type Line } from "../reader/frames.ts";
import { caseFiles, readJson, readText } from "./files.ts";
import { bodyOf, eventsOf, finishOf, readSteps, requestOf, streamOf } from "./generations.ts";

const files = caseFiles("generations");

describe("the events of a case", () => {
  for (const file of files) {
    if (file.kind !== "events") continue;
    it(`${file.caseId} come in a legal order and end once`, () => {
      const steps = readSteps(file.caseId);
      const check = openEventOrderCheck();
      check.add(eventsOf(steps));
      if (finishOf(steps) !== null) check.end();
      const endings = steps.filter((step) => step.type === "finish" || step.type === "failure");
      expect(endings).toEqual([steps.at(-1)]);
    });
  }
});

describe("a generation streams as its golden frames", () => {
  for (const file of files) {
    if (file.kind !== "stream" || file.format === null) continue;
    const { caseId, format } = file;
    it(`${caseId}, ${format}`, () => {
      const frames = streamOf(format, requestOf(caseId, format), readSteps(caseId));
      expect(readable(frames)).toEqual(readable(readText(file)));
    });
  }
});

describe("a generation answers with its golden body", () => {
  for (const file of files) {
    if (file.kind !== "body" || file.format === null) continue;
    const { caseId, format } = file;
    it(`${caseId}, ${format}`, () => {
      const body = bodyOf(format, requestOf(caseId, format), readSteps(caseId));
      expect(JSON.parse(JSON.stringify(body))).toEqual(readJson(file));
    });
  }
});

/** Frames with their data parsed: the order of members may be any, the order of frames may not. */
function readable(frames: string): readonly unknown[] {
  return readFrames(frames).map((line: Line) => {
    if (line.kind === "comment") return line;
    const { event, data } = line.frame;
    return { event, data: data === "[DONE]" ? data : (JSON.parse(data) as unknown) };
  });
}
