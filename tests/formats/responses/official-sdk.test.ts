import * as fc from "fast-check";
import OpenAI, { APIError } from "openai";
import type { Response } from "openai/resources/responses/responses";
import { describe, expect, expectTypeOf, test } from "vitest";

import type { Finish } from "../../../src/conversation/generation-event.ts";
import { Failure } from "../../../src/failure.ts";
import { responsesFormat } from "../../../src/formats/responses/format.ts";
import type { ResponsesBody, ResponsesUsage } from "../../../src/formats/responses/wire.ts";
import {
  type AnswerOptions,
  bodyOfAnswer,
  eventsOf,
  finishWith,
  openContext,
  type SpokenPart,
  streamAnswer,
} from "./answers.ts";

const tools = [
  { type: "function", name: "look", parameters: null, strict: null },
  { type: "custom", name: "run" },
  {
    type: "namespace",
    name: "git",
    description: "",
    tools: [
      { type: "function", name: "log" },
      { type: "custom", name: "patch" },
    ],
  },
];

function clientOf(body: string): OpenAI {
  return new OpenAI({
    apiKey: "key",
    maxRetries: 0,
    fetch: () =>
      Promise.resolve(
        new globalThis.Response(body, { headers: { "content-type": "text/event-stream" } }),
      ),
  });
}

/** What the SDK's own accumulator makes of a stream. */
async function accumulate(stream: string): Promise<unknown> {
  const response = await clientOf(stream)
    .responses.stream({ model: "service-llm", input: "Hello" })
    .finalResponse();
  return JSON.parse(JSON.stringify(response));
}

/** What the SDK adds to what it received. */
function withoutHelp(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHelp);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([key]) => !["parsed", "parsed_arguments", "output_text", "output_parsed"].includes(key),
      )
      .map(([key, inner]) => [key, withoutHelp(inner)]),
  );
}

function withoutLastFrame(stream: string): string {
  return `${stream.trimEnd().split("\n\n").slice(0, -1).join("\n\n")}\n\n`;
}

const pieces = fc.array(
  fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 6 }),
    fc.constantFrom('{"input":"', '"}', "\\", "n", "😀", "{}"),
  ),
  { maxLength: 6 },
);
const spokenPart: fc.Arbitrary<SpokenPart> = fc.oneof(
  fc.record({ type: fc.constantFrom("text" as const, "reasoning" as const), pieces }),
  fc.record({
    type: fc.constant("call" as const),
    name: fc.constantFrom("look", "run", "git__log", "git__patch", "unknown__name"),
    pieces,
  }),
);
const anyFinish: fc.Arbitrary<Finish> = fc
  .constantFrom("stop" as const, "length" as const, "content-filter" as const)
  .map(finishWith);
const anyOptions: fc.Arbitrary<Required<AnswerOptions>> = fc.record({
  request: fc.record({
    tools: fc.constant(tools),
    include: fc.constantFrom([], ["reasoning.encrypted_content"]),
    reasoning: fc.constantFrom(null, { summary: "auto" }),
  }),
  keepalives: fc.boolean(),
});

describe("the official SDK", () => {
  test("accumulates every stream to the body of the same answer", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(spokenPart, { maxLength: 5 }),
        anyFinish,
        anyOptions,
        async (parts, finish, options) => {
          const body: unknown = JSON.parse(
            JSON.stringify(bodyOfAnswer(parts, finish, options.request)),
          );
          const stream = streamAnswer(parts, finish, options);
          expect(withoutHelp(await accumulate(stream))).toEqual(body);
          // Without the last frame, its answer is made of the single events alone.
          const folded = withoutHelp(await accumulate(withoutLastFrame(stream))) as ResponsesBody;
          expect(folded.output).toEqual((body as ResponsesBody).output);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("throws when an answer fails", async () => {
    const encoder = responsesFormat.openEncoder(openContext());
    const stream =
      encoder.open() +
      encoder.encode(eventsOf([{ type: "text", pieces: ["Hel"] }])) +
      encoder.fail(new Failure("overloaded", "Busy. Try again."));
    await expect(accumulate(stream)).rejects.toThrow(APIError);
    await expect(accumulate(stream)).rejects.toMatchObject({ code: "overloaded" });
  });

  test("has a type that the body fits", () => {
    type Writable<T> = T extends readonly (infer Element)[]
      ? Writable<Element>[]
      : T extends object
        ? { -readonly [Key in keyof T]: Writable<T[Key]> }
        : T;
    // What a client sent comes back as it was; the SDK makes output_text itself and knows a part of the codes only.
    type Echoed = "tool_choice" | "tools" | "reasoning" | "metadata";
    type Known = Omit<Response, "output_text" | "error" | Echoed>;
    // `usage` is null only while an answer goes on, and where it failed.
    type Body = Omit<ResponsesBody, "error" | "usage" | Echoed> & {
      readonly usage: ResponsesUsage;
    };
    expectTypeOf((body: Writable<Body>): Known => body).returns.toExtend<Known>();
    const missing = [...requiredFields].filter(
      (field) => !(field in bodyOfAnswer([], finishWith("stop"))),
    );
    expect(missing).toEqual([]);
  });
});

/** Everything that the SDK's type requires, or that clients of Open Responses expect. */
const requiredFields: ReadonlySet<keyof Response> = new Set([
  "id",
  "object",
  "created_at",
  "completed_at",
  "status",
  "error",
  "incomplete_details",
  "instructions",
  "max_output_tokens",
  "model",
  "output",
  "parallel_tool_calls",
  "previous_response_id",
  "reasoning",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_p",
  "truncation",
  "usage",
  "metadata",
  "background",
  "max_tool_calls",
  "service_tier",
  "safety_identifier",
  "prompt_cache_key",
  "access_programs",
]);
