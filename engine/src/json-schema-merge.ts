import type { JsonObject, JsonValue } from "./conversation.ts";

const mergeDepthMax = 16;
const refStepsMax = 32;
/** Longer references name nothing that a client would write, and each use of one is read again. */
const refCharactersMax = 1_000;

/** Whether a value is an object of JSON. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is a list of JSON. */
export function isJsonList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** What a local `$ref` (`#`, `#/$defs/name`) points at; undefined: nothing in this schema. */
export function findTarget(root: JsonValue, reference: string): JsonValue | undefined {
  if (reference.length > refCharactersMax) return undefined;
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let found: JsonValue | undefined = root;
  for (const step of reference.split("/").slice(1)) {
    const key = decodeStep(step);
    if (isJsonList(found)) found = found[Number(key)];
    else if (isJsonObject(found)) found = Object.hasOwn(found, key) ? found[key] : undefined;
    else return undefined;
  }
  return found;
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return step;
  }
}

/** Follows references until there is a schema; undefined for a reference that leads nowhere or round in a circle. */
export function resolve(root: JsonValue, schema: JsonValue): JsonValue | undefined {
  let found: JsonValue | undefined = schema;
  for (let step = 0; step < refStepsMax; step += 1) {
    if (!isJsonObject(found) || typeof found["$ref"] !== "string") return found;
    found = findTarget(root, found["$ref"]);
  }
  return undefined;
}

/** Gives a schema for what satisfies both; `depth` is counted by itself. */
export type Merge = (first: JsonValue, second: JsonValue, depth?: number) => JsonValue;

/** Thrown when schemas take too much work to join. */
export class MergeTooLarge extends Error {
  override readonly name = "MergeTooLarge";
}

/**
 * Joins schemas within one root: the result allows what satisfies both, false where nothing does. Where it cannot tell,
 * it allows more than both do together, never less.
 */
export function openMerge(root: JsonValue, keysMax: number): Merge {
  let keys = 0;
  const merge: Merge = (first, second, depth = 0) => {
    const a = resolve(root, first) ?? true;
    const b = resolve(root, second) ?? true;
    if (a === false || b === false) return false;
    if (!isJsonObject(a) || depth > mergeDepthMax) return b;
    if (!isJsonObject(b)) return a;
    keys += countKeys(a) + countKeys(b);
    if (keys > keysMax) throw new MergeTooLarge();
    const types = intersectTypes(a["type"], b["type"]);
    if (isJsonList(types) && types.length === 0) return false;
    const merged: Record<string, JsonValue> = { ...a, ...b };
    if (types !== undefined) merged["type"] = types;
    for (const key of ["items", "additionalProperties"]) {
      const [one, other] = [a[key], b[key]];
      if (one !== undefined && other !== undefined) merged[key] = merge(one, other, depth + 1);
    }
    return Object.assign(merged, joinLists(a, b), keepStrictest(a, b));
  };
  return merge;
}

function countKeys(schema: JsonObject): number {
  let count = 8;
  for (const key of ["properties", "required", "enum", "allOf", "type"]) {
    const value = schema[key];
    if (isJsonList(value)) count += value.length;
    else if (isJsonObject(value)) count += Object.keys(value).length;
  }
  return count;
}

function joinLists(a: JsonObject, b: JsonObject): JsonObject {
  const joined: Record<string, JsonValue> = {};
  if (isJsonObject(a["properties"]) && isJsonObject(b["properties"])) {
    joined["properties"] = mergeProperties(a["properties"], b["properties"]);
  }
  if (isJsonList(a["required"]) && isJsonList(b["required"])) {
    joined["required"] = [...new Set([...a["required"], ...b["required"]])];
  }
  if (isJsonList(a["enum"]) && isJsonList(b["enum"])) {
    const others = new Set(b["enum"].map((value) => JSON.stringify(value)));
    joined["enum"] = a["enum"].filter((value) => others.has(JSON.stringify(value)));
  }
  if (isJsonList(a["allOf"]) && isJsonList(b["allOf"])) {
    joined["allOf"] = [...a["allOf"], ...b["allOf"]];
  }
  return joined;
}

function keepStrictest(a: JsonObject, b: JsonObject): JsonObject {
  const kept: Record<string, JsonValue> = {};
  const [aMin, bMin] = [a["minItems"], b["minItems"]];
  if (typeof aMin === "number" && typeof bMin === "number") {
    kept["minItems"] = Math.max(aMin, bMin);
  }
  const [aMax, bMax] = [a["maxItems"], b["maxItems"]];
  if (typeof aMax === "number" && typeof bMax === "number") {
    kept["maxItems"] = Math.min(aMax, bMax);
  }
  return kept;
}

function mergeProperties(a: JsonObject, b: JsonObject): JsonObject {
  const entries = new Map<string, JsonValue>(Object.entries(a));
  for (const [key, value] of Object.entries(b)) {
    const other = entries.get(key);
    entries.set(key, other === undefined ? value : { allOf: [other, value] });
  }
  return Object.fromEntries(entries);
}

function intersectTypes(a: JsonValue | undefined, b: JsonValue | undefined): JsonValue | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const [first, second] = [listTypes(a), listTypes(b)];
  const both: string[] = [];
  for (const type of first) {
    if (second.includes(type)) both.push(type);
    else if (type === "integer" && second.includes("number")) both.push(type);
    else if (type === "number" && second.includes("integer")) both.push("integer");
  }
  return [...new Set(both)];
}

/** All that a `type` keyword may name. */
const typeNames: readonly JsonValue[] = [
  "null",
  "boolean",
  "integer",
  "number",
  "string",
  "array",
  "object",
];

/** The names in a `type` keyword, each once. Where it names nothing known, one that nothing is of. */
export function listTypes(type: JsonValue | undefined): readonly string[] {
  if (type === undefined) return [];
  const named = new Set(isJsonList(type) ? type : [type]);
  const known = typeNames.filter((name): name is string => named.has(name));
  return known.length === 0 && named.size > 0 ? ["unknown"] : known;
}
