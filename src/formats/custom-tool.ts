import type { Tool } from "../conversation/conversation.ts";
import {
  type Fields,
  isAbsent,
  readObject,
  readOneOf,
  readOptionalString,
  readString,
} from "./read-fields.ts";
import { readToolName } from "./read-tools.ts";

/**
 * A custom tool takes raw text. To the model it is a function with one string, `input`; its format is part of the
 * description, as no engine constrains what the model writes.
 */
export function readCustomTool(fields: Fields, param: string): Tool {
  const name = readToolName(fields["name"], `${param}.name`);
  const description = readOptionalString(fields["description"], `${param}.description`);
  const format = describeFormat(fields["format"], `${param}.format`);
  const paragraphs = [description, format].filter((text) => text !== null && text !== "");
  return {
    name,
    description: paragraphs.length === 0 ? null : paragraphs.join("\n\n"),
    parameters: {
      type: "object",
      properties: { input: { type: "string" } },
      required: ["input"],
      additionalProperties: false,
    },
  };
}

/** The arguments, as JSON text, with which the function that stands for a custom tool is called. */
export function buildCustomToolArguments(input: string): string {
  return JSON.stringify({ input });
}

function describeFormat(value: unknown, param: string): string | null {
  if (isAbsent(value)) return null;
  const fields = readObject(value, param);
  if (readOneOf(fields["type"], `${param}.type`, ["text", "grammar"]) === "text") return null;
  // Chat Completions nests the grammar, Responses does not.
  const nested = fields["grammar"];
  const grammar = isAbsent(nested) ? fields : readObject(nested, `${param}.grammar`);
  const at = isAbsent(nested) ? param : `${param}.grammar`;
  const syntax = readOneOf(grammar["syntax"], `${at}.syntax`, ["lark", "regex"]);
  const definition = readString(grammar["definition"], `${at}.definition`);
  const called = syntax === "lark" ? "this Lark grammar" : "this regular expression";
  return `The text in "input" must match ${called}:\n${definition}`;
}
