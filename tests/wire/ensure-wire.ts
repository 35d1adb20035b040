import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { bodySchemas } from "./check-answer.ts";
import { openStreamCheck, problemOf } from "./check-stream.ts";

/** Throws unless the frames of an encoder are what their format's schema says; returns them. */
export function ensureFrames(
  format: WireFormatName,
  frames: string,
  { whole = true, usageAsked = null }: FramesGiven = {},
): string {
  const problems: string[] = [];
  const check = openStreamCheck({
    format,
    usageAsked,
    report: (problem) => problems.push(problem),
  });
  check.write(frames);
  if (whole) check.end();
  if (problems.length > 0) throw new Error(`${format}: ${problems.join("\n")}`);
  return frames;
}

/** What frames are of a stream. */
export interface FramesGiven {
  /** They are the whole of it. */
  readonly whole?: boolean;
  /** As `StreamCheckSettings` has it. */
  readonly usageAsked?: boolean | null;
}

/** Throws unless a body is what its format's schema says; returns it. */
export function ensureBody<Body>(format: WireFormatName, body: Body): Body {
  const problem = problemOf(bodySchemas[format], body);
  if (problem !== null) throw new Error(`${format}: ${problem}`);
  return body;
}
