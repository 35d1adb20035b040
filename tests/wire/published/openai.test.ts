import { readFileSync } from "node:fs";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure, type FailureCode, failureKinds } from "../../../src/failure.ts";
import { buildErrorAnswer } from "../../../src/formats/error-answer.ts";
import { caseFiles, isRecord, type JsonRecord, readJson, readText } from "../../cases/files.ts";
import { bodyOf, plainRequest, streamOf } from "../../cases/generations.ts";
import {
  arbitraryGeneration,
  offeredTools,
  stepsOf,
} from "../../properties/arbitrary-generation.ts";
import { framesOf, readFrames } from "../../reader/frames.ts";

// The facts are taken from the document that OpenAI publishes, by extract-schemas.ts beside them.
const facts = JSON.parse(readFileSync(new URL("openai.json", import.meta.url), "utf8")) as {
  readonly frames: Readonly<Record<string, string>>;
  readonly $defs: Readonly<Record<string, unknown>>;
};
const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema({ $id: "openai", $defs: facts.$defs });

const openaiFormats = ["chat-completions", "responses"] as const;
type OpenaiFormat = (typeof openaiFormats)[number];

const bodySchema = {
  "chat-completions": "CreateChatCompletionResponse",
  responses: "Response",
} as const satisfies Record<OpenaiFormat, string>;

/**
 * Where an answer is not what the document says, and why that is right: `schema`, path in the value, what ajv calls it.
 */
const exceptions: Readonly<Record<string, string>> = {
  "ResponseCreatedEvent /response/usage type":
    "the document's own examples have null before the end",
  "ResponseInProgressEvent /response/usage type": "as above",
  "ResponseFailedEvent /response/usage type": "as above: a failed answer has no usage",
  "CreateChatCompletionStreamResponse /choices/*/delta/tool_calls/*/type enum":
    "the document has custom calls in bodies and forgets them in chunks",
  "ResponseFailedEvent /response/error/code enum":
    "an agent compacts its conversation when it reads context_length_exceeded",
};
const seen = new Set<string>();

/** What the document has against a value, but for the exceptions. */
function problemsOf(schema: string, value: unknown): readonly string[] {
  const validate = ajv.getSchema(`openai#/$defs/${schema}`);
  if (validate === undefined) return [`there is no schema ${schema}`];
  if (validate(value) === true) return [];
  return causes(validate.errors ?? []).flatMap((error) => {
    const path = error.instancePath.replaceAll(/\/\d+/gu, "/*");
    const key = `${schema} ${path} ${error.keyword}`;
    if (exceptions[key] === undefined)
      return [`${key}: ${error.message ?? ""} ${JSON.stringify(error.params)}`];
    seen.add(key);
    return [];
  });
}

/** Without what only follows from another error: a choice fails because of what is wrong inside its members. */
function causes(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const choices = errors.filter(({ keyword }) => keyword === "anyOf" || keyword === "oneOf");
  return errors.filter(
    (error) =>
      !choices.some(
        (choice) =>
          (choice === error &&
            errors.some((other) => other !== error && isInside(other, choice))) ||
          // The other member of "an object or null".
          (error.keyword === "type" &&
            error.params["type"] === "null" &&
            error.instancePath === choice.instancePath),
      ),
  );
}

function isInside(error: ErrorObject, choice: ErrorObject): boolean {
  return error.instancePath.startsWith(choice.instancePath);
}

function problemsOfFrame(format: OpenaiFormat, data: string): readonly string[] {
  if (data === "[DONE]") return [];
  const frame = JSON.parse(data) as JsonRecord;
  if (format === "responses") {
    const type = String(frame["type"]);
    return problemsOf(facts.frames[type] ?? `of a frame ${type}`, frame);
  }
  return "error" in frame
    ? problemsOf("ErrorResponse", frame)
    : problemsOf("CreateChatCompletionStreamResponse", frame);
}

function problemsOfStream(format: OpenaiFormat, text: string): readonly string[] {
  return framesOf(readFrames(text)).flatMap(({ data }) => problemsOfFrame(format, data));
}

describe.each(openaiFormats)("the published document of %s", (format) => {
  it("has nothing against any golden file", () => {
    let files = 0;
    for (const file of caseFiles("generations")) {
      if (file.format !== format) continue;
      files += 1;
      const problems =
        file.kind === "body"
          ? problemsOf(bodySchema[format], readJson(file))
          : problemsOfStream(format, readText(file));
      expect(problems, file.name).toEqual([]);
    }
    expect(files).toBeGreaterThan(50);
  });

  it("has nothing against any answer to a request with tools", () => {
    const request = plainRequest(format, offeredTools[format]);
    fc.assert(
      fc.property(arbitraryGeneration, (generation) => {
        const steps = stepsOf(generation, []);
        expect(problemsOfStream(format, streamOf(format, request, steps))).toEqual([]);
        expect(problemsOf(bodySchema[format], bodyOf(format, request, steps))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

it("would notice each required member that is missing", () => {
  for (const file of caseFiles("generations")) {
    if (file.name !== "answer-call.responses.sse") continue;
    for (const { data } of framesOf(readFrames(readText(file)))) {
      const frame = JSON.parse(data) as JsonRecord;
      const schema = facts.frames[String(frame["type"])] ?? "";
      const definition = facts.$defs[schema];
      if (!isRecord(definition)) throw new Error(`${schema} is no schema`);
      for (const member of definition["required"] as readonly string[]) {
        const { [member]: _left, ...rest } = frame;
        expect(problemsOf(schema, rest), `${schema} without ${member}`).not.toEqual([]);
      }
    }
  }
});

it("has nothing against the body of any error", () => {
  for (const code of Object.keys(failureKinds) as FailureCode[]) {
    const { body } = buildErrorAnswer(new Failure(code, "No."), "openai", "req_1");
    expect(problemsOf("ErrorResponse", body), code).toEqual([]);
  }
});

it("has nothing against lists of models", () => {
  const model = { id: "service-llm-legacy", object: "model", created: 1, owned_by: "tributary" };
  expect(problemsOf("Model", model)).toEqual([]);
  expect(problemsOf("ListModelsResponse", { object: "list", data: [model] })).toEqual([]);
  expect(problemsOf("Model", { ...model, created: undefined })).not.toEqual([]);
});

it("has no exception that no answer needs", () => {
  expect([...seen].toSorted()).toEqual(Object.keys(exceptions).toSorted());
});
