import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { formatPretty } from "../../src/telemetry/pretty-line.ts";

const request = {
  level: "info",
  time: "2026-11-22T04:55:54.551Z",
  requestId: "req_01EwbH8MfLqcnAhKXpFmMWCf",
  method: "POST",
  route: "/v1/chat/completions",
  status: 200,
  failureCode: null,
  accountId: "acct_4GPzudok4wJYmki",
  keyId: "key_GlB8RrLPNcsHpr4",
  totalMs: 3461,
  generation: {
    format: "chat-completions",
    streamed: true,
    outcome: "completed",
    allowance: 32768,
    inputTokens: 1234,
    outputTokens: 456,
    cachedInputTokens: 32,
    chargedNanos: 3_058_000,
    firstOutputMs: 72.25,
    totalMs: 3450.5,
  },
  event: "request",
};

const row = (fields: object): string =>
  stripVTControlCharacters(formatPretty(JSON.stringify({ ...request, ...fields }), true));

describe("a request on a terminal", () => {
  it.each([
    [{}, "04:55:54 200 chat stream 1234 in 456 out 0.003058 72/3451 ms …Hpr4 …MWCf"],
    [
      {
        status: 499,
        failureCode: null,
        generation: {
          ...request.generation,
          format: "messages",
          outcome: "cancelled",
          firstOutputMs: null,
        },
      },
      "04:55:54 499 messages stream cancelled 1234 in 456 out 0.003058 -/3451 ms …Hpr4 …MWCf",
    ],
    [
      { level: "warn", status: 503, failureCode: "overloaded", generation: null },
      "04:55:54 WARN  503 POST /v1/chat/completions overloaded 3461 ms …Hpr4 …MWCf",
    ],
    [
      {
        status: 401,
        failureCode: "authentication",
        keyId: null,
        accountId: null,
        generation: null,
        totalMs: 0.4,
      },
      "04:55:54 401 POST /v1/chat/completions authentication 0 ms …MWCf",
    ],
    [
      { method: "GET", route: "", status: 404, keyId: null, generation: null },
      "04:55:54 404 GET (no route) 3461 ms …MWCf",
    ],
  ])("is one row: %o", (fields, text) => {
    expect(row(fields)).toBe(`${text}\n`);
  });

  it.each(["chat-completions", "responses", "messages"])(
    "fits 80 columns with a long prompt and a long answer of %s",
    (format) => {
      const generation = {
        ...request.generation,
        format,
        inputTokens: 12_345,
        outputTokens: 2_048,
        totalMs: 45_678,
      };
      expect(row({ generation }).trimEnd().length).toBeLessThanOrEqual(80);
    },
  );

  it("cannot move the cursor", () => {
    expect(row({ requestId: "a\u001B[2J\u202E" })).toContain(" …[2J?");
  });

  it("has every field where no terminal shows it", () => {
    expect(formatPretty(JSON.stringify(request), false)).toContain(
      "generation.cachedInputTokens=32",
    );
  });
});
