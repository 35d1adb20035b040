import { expect, test } from "vitest";
import {
  readInputItems,
  readModel,
  readOptionalInteger,
  readOptionalNumber,
  readOutputTokens,
  readStopSequences,
  refuseJsonSchemaOutput,
} from "../../src/formats/read-fields.ts";
import { refusalOf } from "./answer-context.ts";

test.each([
  [1, 1],
  [65_537, 65_537],
  [1e308, Number.MAX_SAFE_INTEGER],
  [JSON.parse("1".padEnd(400, "0")), Number.MAX_SAFE_INTEGER],
  [null, null],
  [undefined, null],
])("an output allowance of %s is read as %s", (value, expected) => {
  expect(readOutputTokens(value, "max_tokens")).toBe(expected);
});

test.each([0, -1, -0, 1.5, NaN, -Infinity, "5", true, [5], {}])(
  "an output allowance of %s is refused by name",
  (value) => {
    const failure = refusalOf(() => readOutputTokens(value, "max_tokens"));
    expect(failure.code).toBe("invalid_request");
    expect(failure.facts.param).toBe("max_tokens");
    expect(failure.message).toContain("whole number from 1");
  },
);

test("a number is inside its range, bounds included, and not Infinity", () => {
  const range = { min: 0, max: 2 };
  expect([0, 2, 0.5].map((value) => readOptionalNumber(value, "temperature", range))).toEqual([
    0, 2, 0.5,
  ]);
  for (const value of [-0.001, 2.001, Infinity, NaN, "1"])
    expect(refusalOf(() => readOptionalNumber(value, "temperature", range)).facts.param).toBe(
      "temperature",
    );
  expect(refusalOf(() => readOptionalInteger(0.5, "seed", range)).facts.param).toBe("seed");
});

test("a list without items is refused", () => {
  expect(readInputItems([1], "messages")).toHaveLength(1);
  expect(refusalOf(() => readInputItems([], "messages"))).toMatchObject({
    code: "invalid_request",
    facts: { param: "messages" },
  });
});

test("the model is echoed, up to 256 characters, and has a default", () => {
  expect(readModel(undefined)).toBe("service-llm");
  expect(readModel(null)).toBe("service-llm");
  expect(readModel("")).toBe("");
  expect(readModel("x".repeat(256))).toHaveLength(256);
  expect(refusalOf(() => readModel("x".repeat(257))).facts.param).toBe("model");
  expect(refusalOf(() => readModel(5)).facts.param).toBe("model");
});

test("an empty stop sequence is refused where it stands", () => {
  expect(readStopSequences(["a", "b"], "stop")).toEqual(["a", "b"]);
  expect(refusalOf(() => readStopSequences(["a", ""], "stop")).facts.param).toBe("stop[1]");
});

test("json_schema output is refused in three spellings, and nothing else of those fields is", () => {
  const format = { type: "json_schema", schema: {} };
  const spellings = {
    "response_format.type": { response_format: format },
    "output_format.type": { output_format: format },
    "text.format.type": { text: { format } },
  };
  for (const [param, body] of Object.entries(spellings))
    expect(refusalOf(() => refuseJsonSchemaOutput(body))).toMatchObject({
      code: "not_offered",
      facts: { param },
    });
  for (const value of [null, 5, "json_schema", [], [format], { type: "text" }, { format: 5 }])
    expect(() =>
      refuseJsonSchemaOutput({ response_format: value, output_format: value, text: value }),
    ).not.toThrow();
});
