import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** A JSON object that a client sent, before its fields are checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** Inclusive bounds of a number. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
}

/** The model that every request reaches, and its name where a client gives none. */
export const deployedModel = "service-llm";

/** A 400 for a field whose value is wrong. The message says what to send instead. */
export function invalidField(param: string, message: string): Failure {
  return new Failure("invalid_request", `${param}: ${message}`, { param });
}

/** A 400 for a field that asks for something this service does not do. */
export function notOfferedField(param: string, message: string): Failure {
  return new Failure("not_offered", `${param}: ${message}`, { param });
}

/** A client's text inside a message: quoted, without control characters, short. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}...` : text);
}

/** Whether a JSON value is an object, neither null nor an array. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `null` of an optional field counts as absent. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** A string, which may be empty. */
export function readString(value: unknown, param: string): string {
  if (typeof value === "string") return value;
  throw wrongType(value, param, "a string");
}

/** A string, or null where there is none. */
export function readOptionalString(value: unknown, param: string): string | null {
  return isAbsent(value) ? null : readString(value, param);
}

/** One of a few strings. */
export function readOneOf<const Choice extends string>(
  value: unknown,
  param: string,
  choices: readonly Choice[],
): Choice {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  const expected = `one of ${choices.map((choice) => `"${choice}"`).join(", ")}`;
  if (typeof value !== "string") throw wrongType(value, param, expected);
  throw invalidField(param, `must be ${expected}, not ${quote(value)}.`);
}

/** A boolean, or null where there is none. */
export function readOptionalBoolean(value: unknown, param: string): boolean | null {
  if (isAbsent(value)) return null;
  if (typeof value === "boolean") return value;
  throw wrongType(value, param, "true or false");
}

/** A number inside a range, or null where there is none. */
export function readOptionalNumber(
  value: unknown,
  param: string,
  range: NumberRange,
): number | null {
  if (isAbsent(value)) return null;
  const expected = `a number from ${String(range.min)} to ${String(range.max)}`;
  if (typeof value !== "number") throw wrongType(value, param, expected);
  if (value >= range.min && value <= range.max) return value;
  throw invalidField(param, `must be ${expected}, not ${String(value)}.`);
}

/** A whole number inside a range, or null where there is none. */
export function readOptionalInteger(
  value: unknown,
  param: string,
  range: NumberRange,
): number | null {
  const number = readOptionalNumber(value, param, range);
  if (number === null || Number.isInteger(number)) return number;
  throw invalidField(param, `must be a whole number, not ${String(number)}.`);
}

/** Every whole number that JSON carries without loss. */
export const anyInteger: NumberRange = {
  min: Number.MIN_SAFE_INTEGER,
  max: Number.MAX_SAFE_INTEGER,
};

/**
 * An explicit output allowance: a whole number from 1, of any size, since larger ones are capped and not refused; null
 * where there is none.
 */
export function readOutputTokens(value: unknown, param: string): number | null {
  if (isAbsent(value)) return null;
  if (typeof value !== "number") throw wrongType(value, param, "a whole number from 1");
  // Digits beyond what a double holds are read as Infinity.
  if (value === Infinity) return Number.MAX_SAFE_INTEGER;
  if (!Number.isInteger(value) || value < 1)
    throw invalidField(param, `must be a whole number from 1, not ${String(value)}.`);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** An array of anything. */
export function readArray(value: unknown, param: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrongType(value, param, "an array");
}

/** The parts of a content that is no string. `parts` says what they are called in this format. */
export function readContentParts(value: unknown, param: string, parts: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrongType(value, param, `a string or an array of ${parts}`);
}

/** An array, empty where there is none. */
export function readOptionalArray(value: unknown, param: string): readonly unknown[] {
  return isAbsent(value) ? [] : readArray(value, param);
}

/** A JSON object. */
export function readObject(value: unknown, param: string): Fields {
  if (isObject(value)) return value;
  throw wrongType(value, param, "an object");
}

/** A JSON object, or null where there is none. */
export function readOptionalObject(value: unknown, param: string): Fields | null {
  return isAbsent(value) ? null : readObject(value, param);
}

/** Stop sequences: an array of strings that are not empty; none where the field is absent. */
export function readStopSequences(value: unknown, param: string): readonly string[] {
  return readOptionalArray(value, param).map((item, index) => {
    const text = readString(item, `${param}[${String(index)}]`);
    if (text !== "") return text;
    throw invalidField(`${param}[${String(index)}]`, "must not be empty; leave it out.");
  });
}

/** The model a client named, which the answer repeats; every name reaches the one deployment. */
export function readModel(value: unknown): string {
  if (isAbsent(value)) return deployedModel;
  const model = readString(value, "model");
  if (model.length <= limits.modelNameCharactersMax) return model;
  throw invalidField(
    "model",
    `must have at most ${String(limits.modelNameCharactersMax)} characters; use "${deployedModel}".`,
  );
}

/** The elements of `messages` or `input`: at least one. */
export function readInputItems(value: unknown, param: string): readonly unknown[] {
  const items = readArray(value, param);
  if (items.length === 0) throw invalidField(param, "must have at least one element.");
  return items;
}

/** Refuses JSON Schema output under the field names of all three formats, whichever format a request came in. */
export function refuseJsonSchemaOutput(body: Fields): void {
  refuseJsonSchemaType(body["response_format"], "response_format.type");
  refuseJsonSchemaType(body["output_format"], "output_format.type");
  const text = body["text"];
  if (isObject(text)) refuseJsonSchemaType(text["format"], "text.format.type");
}

function refuseJsonSchemaType(format: unknown, param: string): void {
  if (!isObject(format) || format["type"] !== "json_schema") return;
  throw notOfferedField(
    param,
    "json_schema output is not offered. Leave it out, describe the shape in a message, and check the answer yourself.",
  );
}

function wrongType(value: unknown, param: string, expected: string): Failure {
  if (value === undefined) return invalidField(param, `is missing; it must be ${expected}.`);
  return invalidField(param, `must be ${expected}, not ${nameOfType(value)}.`);
}

function nameOfType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
