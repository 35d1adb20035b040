import { expect, test } from "vitest";
import { limits } from "../../src/limits.ts";
import type { RequestFacts } from "../../src/telemetry/events.ts";
import { addFigures, openCountedRequests } from "../../src/telemetry/process-figures.ts";

// What a process counts of its requests in memory, for those who watch.

/** As far as it is counted. */
function ended(failureCode: string | null, firstOutputMs: number | null): RequestFacts {
  const generation = failureCode === null ? { firstOutputMs } : null;
  const facts: { readonly [Name in keyof RequestFacts]?: unknown } = { failureCode, generation };
  return facts as RequestFacts;
}

test("failures are counted from the begin, first outputs for some minutes, and both are told on", () => {
  let nowMs = 0;
  const told: RequestFacts[] = [];
  const counted = openCountedRequests(() => nowMs);
  const telemetry = counted.watch({ requestEnded: (facts) => void told.push(facts) });
  expect(counted.read()).toEqual({ failures: {}, firstOutputsMs: [] });
  telemetry.requestEnded(ended(null, 30));
  telemetry.requestEnded(ended("overloaded", null));
  telemetry.requestEnded(ended(null, null));
  nowMs = limits.firstOutputsMs;
  telemetry.requestEnded(ended("overloaded", null));
  telemetry.requestEnded(ended("rate_limited", null));
  telemetry.requestEnded(ended(null, 50));
  expect(counted.read()).toEqual({
    failures: { overloaded: 2, rate_limited: 1 },
    firstOutputsMs: [30, 50],
  });
  nowMs += 1;
  expect(counted.read().firstOutputsMs).toEqual([50]);
  for (let more = 0; more < limits.firstOutputsKept; more += 1)
    telemetry.requestEnded(ended(null, more));
  expect(counted.read().firstOutputsMs).toHaveLength(limits.firstOutputsKept);
  expect(told).toHaveLength(6 + limits.firstOutputsKept);
});

test("the figures of processes add up", () => {
  const one = { outputTokens: 5, failures: { overloaded: 1 }, firstOutputsMs: [1] };
  const other = { outputTokens: 7, failures: { overloaded: 2, api_error: 1 }, firstOutputsMs: [2] };
  expect(addFigures([one, other])).toEqual({
    outputTokens: 12,
    failures: { overloaded: 3, api_error: 1 },
    firstOutputsMs: [1, 2],
  });
});
