import type { JsonObject, JsonValue } from "./conversation.ts";
import {
  addOneOf,
  anyObjectGrammar,
  GrammarRules,
  GrammarTooLarge,
  quote,
} from "./grammar-rules.ts";

/** A grammar in llama.cpp's notation (GBNF) for the arguments of one tool. */
export interface ArgumentsGrammar {
  readonly grammar: string;
  /** Why it allows any JSON object instead of what the schema says; null: it follows the schema. */
  readonly relaxed: string | null;
}

const charactersMax = 192 * 1024;
const depthMax = 96;
/** Written out one by one; more are as good as any number. */
const itemsWrittenMax = 64;
/** More alternatives at one place make every token slow. */
const alternativesMax = 256;
/** Longer references name nothing that a client would write, and each use of one is read again. */
const refCharactersMax = 1_000;
const refStepsMax = 32;

/**
 * What a tool's schema allows, as a grammar: whatever follows it is one JSON object that satisfies the supported subset
 * (docs/embedded-engine.md lists it). Keywords outside the subset are left out of account. Never throws.
 */
export function buildArgumentsGrammar(parameters: JsonObject | null): ArgumentsGrammar {
  if (parameters === null) return relax(null);
  const root = resolve(parameters, parameters);
  // What says nothing of objects means them all the same; a choice among them is left out of account here.
  if (!isJsonObject(root) || !listTypes(root).some((type) => /^(?:object|value)$/u.test(type)))
    return relax("its schema is not that of an object");
  try {
    const rules = new GrammarRules(charactersMax);
    const write = openWriter(parameters, rules);
    return { grammar: rules.write(`ws ${writeObject(root, { rules, write })}`), relaxed: null };
  } catch (error) {
    if (error instanceof GrammarTooLarge) return relax("its schema makes too large a grammar");
    throw error;
  }
}

const relax = (relaxed: string | null): ArgumentsGrammar => ({
  grammar: anyObjectGrammar,
  relaxed,
});

/** Gives what stands for a schema in a rule. */
type Write = (schema: JsonValue | undefined) => string;

type Writing = { readonly rules: GrammarRules; readonly write: Write };

function openWriter(root: JsonValue, rules: GrammarRules): Write {
  const known = new Map<JsonObject, string>();
  let depth = 0;
  const write: Write = (schema) => {
    const found = resolve(root, schema);
    if (!isJsonObject(found)) return "value";
    const before = known.get(found);
    if (before !== undefined) return before;
    if (depth === depthMax) return "value";
    const name = rules.reserve("part");
    known.set(found, name);
    depth += 1;
    rules.define(name, writeBody(found, { rules, write }));
    depth -= 1;
    return name;
  };
  return write;
}

function writeBody(schema: JsonObject, writing: Writing): string {
  const { const: only, enum: values } = schema;
  const literals = only === undefined ? values : [only];
  if (isJsonList(literals) && literals.length > 0) {
    const texts = new Set(literals.map((value) => JSON.stringify(value)));
    return addOneOf(writing.rules, [...texts]);
  }
  const branches = listBranches(schema);
  const written =
    branches?.map((branch) => writing.write(branch)) ??
    listTypes(schema).map((type) => writeType(type, schema, writing));
  return [...new Set(written)].join(" | ");
}

/** Keywords that say what a value is. Beside them a choice is left out of account. */
const tellingKeywords =
  "type properties required additionalProperties patternProperties items prefixItems".split(" ");

/** The schemas of which one must be satisfied; null: this is not just a choice. */
function listBranches(schema: JsonObject): readonly JsonValue[] | null {
  if (tellingKeywords.some((keyword) => schema[keyword] !== undefined)) return null;
  const { allOf, anyOf, oneOf } = schema;
  const found = anyOf ?? oneOf ?? (isJsonList(allOf) && allOf.length === 1 ? allOf : null);
  if (!isJsonList(found) || found.length === 0 || found.length > alternativesMax) return null;
  return found;
}

const typeNames = ["null", "boolean", "integer", "number", "string", "array", "object"];

/** The types that a schema names or means, each once; "value": it says nothing that is known. */
function listTypes(schema: JsonObject): readonly string[] {
  const { additionalProperties, items, prefixItems, properties, required, type } = schema;
  const named = new Set(isJsonList(type) ? type : [type]);
  const known = typeNames.filter((name) => named.has(name));
  if (known.length > 0) return known;
  if (type !== undefined) return ["value"];
  if ((properties ?? required ?? additionalProperties) !== undefined) return ["object"];
  return (items ?? prefixItems) === undefined ? ["value"] : ["array"];
}

function writeType(type: string, schema: JsonObject, writing: Writing): string {
  if (type === "object") return writeObject(schema, writing);
  return type === "array" ? writeArray(schema, writing) : type;
}

/**
 * Members in the order of the schema, others only where it names none. Two rules a property: nothing was written before
 * it, or something was.
 */
function writeObject(schema: JsonObject, { rules, write }: Writing): string {
  const declared = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const listed = isJsonList(schema["required"]) ? schema["required"] : [];
  const required = new Set(listed.filter((name) => typeof name === "string"));
  const names = [...new Set([...Object.keys(declared), ...required])];
  if (names.length > alternativesMax) return "any-object";
  if (names.length === 0) return writeMap(schema, write);
  let later = rules.add("later", 'ws "}"');
  let first = '"}"';
  for (const name of names.toReversed()) {
    const value = write(Object.hasOwn(declared, name) ? declared[name] : undefined);
    const member = `${quote(`${JSON.stringify(name)}:`)} ws ${value} ${later}`;
    const isOptional = !required.has(name);
    first = rules.add("first", isOptional ? `${member} | ${first}` : member);
    later = rules.add("later", `"," ws ${member}${isOptional ? ` | ${later}` : ""}`);
  }
  return `"{" ws ${first}`;
}

/** An object whose schema names no property. */
function writeMap(schema: JsonObject, write: Write): string {
  const { additionalProperties: rest, patternProperties: patterns } = schema;
  if (patterns !== undefined || rest === undefined) return "any-object";
  if (rest === false) return '"{" ws "}"';
  const member = `string ":" ws ${write(rest)}`;
  return `"{" ws ( ${member} ( "," ws ${member} )* )? ws "}"`;
}

function writeArray(schema: JsonObject, { write }: Writing): string {
  const { items, prefixItems } = schema;
  const least = countItems(schema["minItems"], 0);
  const most = countItems(schema["maxItems"], Infinity);
  const heads = isJsonList(prefixItems) ? prefixItems : items;
  if (isJsonList(heads) && heads.length > 0) {
    // A tuple is written whole.
    if (heads.length < least || heads.length > most) return "any-array";
    return `"[" ws ${heads.map((head) => write(head)).join(' "," ws ')} ws "]"`;
  }
  if (most === 0) return '"[" ws "]"';
  const item = write(isJsonList(items) ? undefined : items);
  const leastMore = Math.min(Math.max(least, 1), itemsWrittenMax) - 1;
  const mostMore = most <= itemsWrittenMax ? String(Math.max(leastMore, most - 1)) : "";
  const all = `${item} ( "," ws ${item} ){${String(leastMore)},${mostMore}}`;
  return `"[" ws ${least === 0 ? `( ${all} )?` : all} ws "]"`;
}

function countItems(value: JsonValue | undefined, absent: number): number {
  return typeof value === "number" && value >= 0 ? Math.floor(value) : absent;
}

/** Follows local references (`#`, `#/$defs/name`); undefined where they lead nowhere or round in a circle. */
function resolve(root: JsonValue, schema: JsonValue | undefined): JsonValue | undefined {
  let found = schema;
  for (let step = 0; step < refStepsMax; step += 1) {
    const reference = isJsonObject(found) ? found["$ref"] : undefined;
    if (typeof reference !== "string") return found;
    if (reference.length > refCharactersMax || !/^#(?:\/|$)/u.test(reference)) return undefined;
    found = root;
    for (const key of reference.split("/").slice(1).map(decodeStep)) {
      // A list has its indexes for keys.
      const held: JsonObject =
        typeof found === "object" && found !== null ? (found as JsonObject) : {};
      found = Object.hasOwn(held, key) ? held[key] : undefined;
    }
  }
  return undefined;
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return step;
  }
}

function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJsonList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
