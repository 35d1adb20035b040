import { expect, it } from "vitest";
import { compareRecordings, isStructural, printDifferences } from "./compare-recordings.ts";
import { recordSdk } from "./record-sdk.ts";
import { readRecordingOf } from "./recording.ts";
import { sdks } from "./sdk-programs.ts";

it.each(sdks)("$name sends what is recorded of it", async (sdk) => {
  const recorded = readRecordingOf(sdk.name);
  if (recorded === null) throw new Error(`record it: npm run record -- ${sdk.name}`);
  const differences = compareRecordings(recorded, await recordSdk(sdk));
  expect(printDifferences(differences.filter(isStructural))).toBe("");
});
