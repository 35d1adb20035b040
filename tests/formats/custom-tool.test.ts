import { expect, test } from "vitest";
import { decodeCustomToolInput } from "../../src/formats/custom-tool-input.ts";
import { buildCustomToolArguments, readCustomTool } from "../../src/formats/custom-tool.ts";
import { refusalOf } from "./answer-context.ts";

const read = (format: unknown) => () => readCustomTool({ name: "run", format }, "tools[2].custom");
const grammar = { syntax: "lark", definition: 'start: "a"+' };

test("a custom tool is a function with one string, its grammar told in both spellings", () => {
  const flat = readCustomTool(
    { name: "patch", description: "Edits.", format: { type: "grammar", ...grammar } },
    "tools[0]",
  );
  const nested = readCustomTool(
    { name: "patch", description: "Edits.", format: { type: "grammar", grammar } },
    "tools[0].custom",
  );
  expect(flat).toEqual(nested);
  expect(flat.description).toBe(
    'Edits.\n\nThe text in "input" must match this Lark grammar:\nstart: "a"+',
  );
  expect(flat.parameters).toMatchObject({
    type: "object",
    properties: { input: { type: "string" } },
    required: ["input"],
  });
});

test("without description and grammar there is nothing to tell", () => {
  expect(readCustomTool({ name: "run" }, "tools[0]").description).toBeNull();
  expect(
    readCustomTool({ name: "run", format: { type: "text" } }, "tools[0]").description,
  ).toBeNull();
});

test("a format that is not understood is refused by name", () => {
  expect(refusalOf(read({ type: "regex" })).facts.param).toBe("tools[2].custom.format.type");
  expect(refusalOf(read({ type: "grammar", syntax: "bnf", definition: "" })).facts.param).toBe(
    "tools[2].custom.format.syntax",
  );
  expect(refusalOf(read({ type: "grammar", grammar: { syntax: "lark" } })).facts.param).toBe(
    "tools[2].custom.format.grammar.definition",
  );
});

test.each(["", 'say "hi"\n\\', "é 😀 \u0000", "lone \ud800 half"])(
  "the input %j survives as arguments",
  (input) => {
    expect(decodeCustomToolInput(buildCustomToolArguments(input))).toBe(input);
  },
);
