import { expect } from "vitest";
import { isRecord } from "./files.ts";

/**
 * A case file's value as something to compare with: `{"$like": pattern}` is any text that fits, `{"$contains": {...}}`
 * any object with at least these members, `{"$anyOf": [...]}` any of the values. Cases use them only where the wire
 * contract leaves the words open.
 */
export function expected(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expected);
  if (!isRecord(value)) return value;
  if (typeof value["$like"] === "string") return expect.stringMatching(new RegExp(value["$like"]));
  if (isRecord(value["$contains"])) {
    return expect.objectContaining(entriesOf(value["$contains"]));
  }
  const choices = value["$anyOf"];
  if (Array.isArray(choices)) {
    return {
      asymmetricMatch: (actual: unknown) =>
        choices.some((choice) => JSON.stringify(choice) === JSON.stringify(actual)),
      toString: () => `any of ${JSON.stringify(choices)}`,
    };
  }
  return entriesOf(value);
}

function entriesOf(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, expected(entry)]));
}
