import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure, failureKinds } from "../../src/failure.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { openContext, testReasoning } from "../cases/context.ts";
import { caseFiles, isRecord, readJson, type JsonRecord } from "../cases/files.ts";
import { mutate, type Mutation } from "./mutate-json.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];
const requests = caseFiles("requests").filter((file) => file.kind === "request");

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("replace", "remove", "duplicate", "add", "move", "stretch"),
  place: fc.nat(),
  value: fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(1e308, -0, 1e-7, "\ud800", "__proto__", "a".repeat(5000)),
  ),
});

// For example: in `{"messages": [{"role": "user", "content": "Hi"}]}` the mutation "replace, place 2, value 1e308" makes the role a number:
// refused as invalid_request, with its place. "duplicate, place 1" makes two messages of one: understood.
describe.each(formats)("a mutated request in %s", (format) => {
  it("is understood or refused with a code, and at least two in five are understood", () => {
    let accepted = 0;
    let tried = 0;
    const files = requests.filter((file) => file.format === format);
    fc.assert(
      fc.property(
        fc.constantFrom(...files),
        fc.array(mutation, { minLength: 0, maxLength: 3 }),
        (file, mutations) => {
          const body = mutations.reduce(mutateBody, readJson(file));
          tried += 1;
          try {
            const parsed = wireFormats[format].parseRequest(body, testReasoning);
            accepted += 1;
            expect(() => structuredClone(parsed), "plain data").not.toThrow();
            expect(parsed.itemCount).toBeGreaterThan(0);
            expect(Number.isSafeInteger(parsed.outputTokensRequested ?? 1)).toBe(true);
            // Whatever was understood can be answered.
            wireFormats[format].openEncoder(openContext(parsed.echo)).open();
          } catch (error) {
            ensureWellFormed(error);
          }
        },
      ),
      { numRuns: 1_500 },
    );
    expect(tried).toBeGreaterThanOrEqual(1_500);
    expect(accepted / tried).toBeGreaterThan(0.4);
  });

  it("is refused with a code when it is any JSON object at all", () => {
    const names = [
      "messages",
      "input",
      "model",
      "tools",
      "tool_choice",
      "system",
      "stream",
      "text",
    ];
    const body = fc.dictionary(
      fc.oneof(fc.constantFrom(...names), fc.string()),
      fc.jsonValue({ maxDepth: 4 }),
    );
    fc.assert(
      fc.property(body, (value) => {
        try {
          wireFormats[format].parseRequest(value, testReasoning);
        } catch (error) {
          ensureWellFormed(error);
        }
      }),
      { numRuns: 500 },
    );
  });
});

function ensureWellFormed(error: unknown): void {
  if (!(error instanceof Failure)) throw error;
  expect(failureKinds[error.code].status).toBe(400);
  expect(error.message.length).toBeGreaterThan(10);
  // A message may quote the caller, but not whole.
  expect(error.message.length).toBeLessThan(2_000);
  expect(error.facts.param ?? "").not.toBe("");
}

function mutateBody(body: JsonRecord, step: Mutation): JsonRecord {
  const mutated = mutate(body, step);
  return isRecord(mutated) ? mutated : body;
}
