import type { JsonObject, JsonValue } from "./conversation.ts";
import {
  addOneOf,
  addOtherKey,
  anyObjectGrammar,
  GrammarTooLarge,
  openGrammarRules,
  quote,
  type GrammarRules,
} from "./grammar-rules.ts";
import {
  findTarget,
  isJsonList,
  isJsonObject,
  listTypes,
  MergeTooLarge,
  openMerge,
  resolve,
  type Merge,
} from "./json-schema-merge.ts";

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
const propertiesMax = 256;
const branchesMax = 128;
const mergedKeysMax = 100_000;

/** Keywords that tell what a value is; a schema without them beside `anyOf` is that `anyOf` alone. */
const tellingKeywords = new Set(
  (
    "type properties required additionalProperties patternProperties enum const " +
    "items prefixItems minItems maxItems anyOf oneOf allOf"
  ).split(" "),
);

/**
 * What a tool's schema allows, as a grammar: whatever follows it is one JSON object that satisfies the supported subset
 * (docs/embedded-engine.md lists it). Keywords outside the subset are left out of account. Never throws.
 */
export function buildArgumentsGrammar(parameters: JsonObject | null): ArgumentsGrammar {
  if (parameters === null) return { grammar: anyObjectGrammar, relaxed: null };
  try {
    const rules = openGrammarRules(charactersMax);
    const merge = openMerge(parameters, mergedKeysMax);
    const write = openWriter(rules, parameters, merge);
    const whole = merge({ type: "object" }, parameters);
    const root = write(whole, new Set(), 0);
    if (root === null) return relax("no object satisfies its schema");
    return { grammar: rules.write(`ws ${root}`), relaxed: null };
  } catch (error) {
    if (error instanceof GrammarTooLarge || error instanceof MergeTooLarge)
      return relax("its schema makes too large a grammar");
    // Deep nesting of references is the only other thing that can go wrong here.
    if (error instanceof RangeError) return relax("its schema is nested too deeply");
    throw error;
  }
}

function relax(reason: string): ArgumentsGrammar {
  return { grammar: anyObjectGrammar, relaxed: reason };
}

/**
 * Gives what stands for a schema in a rule; null: nothing satisfies it. `entered`: schemas that were begun without a
 * character since, as a rule that begins with itself has no end.
 */
type Write = (schema: JsonValue, entered: ReadonlySet<JsonValue>, depth: number) => string | null;

interface Writing {
  readonly rules: GrammarRules;
  readonly root: JsonValue;
  readonly merge: Merge;
  readonly write: Write;
}

function openWriter(rules: GrammarRules, root: JsonValue, merge: Merge): Write {
  const known = new Map<JsonValue, string | null>();
  const write: Write = (schema, entered, depth) => {
    if (schema === false) return null;
    if (!isJsonObject(schema) || entered.has(schema) || depth > depthMax) return "value";
    const before = known.get(schema);
    if (before !== undefined) return before;
    const name = rules.reserve("part");
    known.set(schema, name);
    const body = writeBody(schema, { entered: new Set([...entered, schema]), depth, writing });
    if (body === null) known.set(schema, null);
    else rules.define(name, body);
    return body === null ? null : name;
  };
  const writing: Writing = { rules, root, merge, write };
  return write;
}

interface Place {
  readonly entered: ReadonlySet<JsonValue>;
  readonly depth: number;
  readonly writing: Writing;
}

function writeBody(schema: JsonObject, place: Place): string | null {
  const { writing, entered, depth } = place;
  const { root, merge, write } = writing;
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    return write(findTarget(root, reference) ?? true, entered, depth + 1);
  }
  const { allOf, ...besides } = schema;
  if (isJsonList(allOf)) {
    const merged = allOf
      .slice(0, branchesMax)
      .reduce<JsonValue>((all, one) => merge(all, one), besides);
    return write(merged, entered, depth + 1);
  }
  if (schema["const"] !== undefined) return writeLiterals([schema["const"]], schema, place);
  if (isJsonList(schema["enum"])) return writeLiterals(schema["enum"], schema, place);
  for (const keyword of ["anyOf", "oneOf"]) {
    if (isJsonList(schema[keyword])) return writeBranches(schema, keyword, place);
  }
  return writeTypes(schema, place);
}

function writeLiterals(
  values: readonly JsonValue[],
  schema: JsonObject,
  { writing }: Place,
): string | null {
  const types = listTypes(schema["type"]);
  const listed = schema["enum"];
  const allowed = isJsonList(listed) ? new Set(listed.map((value) => JSON.stringify(value))) : null;
  const texts = values
    .filter((value) => types.length === 0 || types.some((type) => isOfType(value, type)))
    .map((value) => JSON.stringify(value))
    .filter((text) => allowed === null || allowed.has(text));
  if (texts.length === 0) return null;
  return addOneOf(writing.rules, [...new Set(texts)]);
}

function isOfType(value: JsonValue, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    case "array":
      return isJsonList(value);
    case "object":
      return isJsonObject(value);
    default:
      return typeof value === type;
  }
}

function writeBranches(
  schema: JsonObject,
  keyword: string,
  { entered, depth, writing }: Place,
): string | null {
  const { [keyword]: branches, ...besides } = schema;
  if (!isJsonList(branches) || branches.length > branchesMax)
    return writing.write(besides, entered, depth + 1);
  const alone = !Object.keys(besides).some((key) => tellingKeywords.has(key));
  const names = branches.map((branch) =>
    writing.write(alone ? branch : writing.merge(besides, branch), entered, depth + 1),
  );
  return joinAlternatives(names);
}

function joinAlternatives(names: readonly (string | null)[]): string | null {
  const possible = new Set(names.filter((name) => name !== null));
  return possible.size === 0 ? null : [...possible].join(" | ");
}

function writeTypes(schema: JsonObject, place: Place): string | null {
  const types = listTypes(schema["type"]);
  const named = types.length > 0 ? types : guessTypes(schema);
  return joinAlternatives(named.map((type) => writeType(type, schema, place)));
}

function guessTypes(schema: JsonObject): readonly string[] {
  if (["properties", "required", "additionalProperties"].some((key) => schema[key] !== undefined))
    return ["object"];
  if (["items", "prefixItems", "minItems", "maxItems"].some((key) => schema[key] !== undefined))
    return ["array"];
  return ["any"];
}

function writeType(type: string, schema: JsonObject, place: Place): string | null {
  switch (type) {
    case "string":
    case "integer":
    case "number":
    case "boolean":
    case "null":
      return type;
    case "object":
      return writeObject(schema, place);
    case "array":
      return writeArray(schema, place);
    default:
      return "value";
  }
}

interface Property {
  /** `"key":` and its value. */
  readonly text: string;
  readonly required: boolean;
}

function writeObject(schema: JsonObject, place: Place): string | null {
  const { rules } = place.writing;
  const declared = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const required = new Set(
    isJsonList(schema["required"])
      ? schema["required"].filter((name) => typeof name === "string")
      : [],
  );
  const names = [...new Set([...Object.keys(declared), ...required])];
  if (names.length > propertiesMax) return "any-object";
  const properties: Property[] = [];
  for (const name of names) {
    const schemaOfValue = Object.hasOwn(declared, name) ? declared[name] : undefined;
    const value = place.writing.write(schemaOfValue ?? true, new Set(), place.depth + 1);
    if (value === null && required.has(name)) return null;
    if (value === null) continue;
    const text = `${quote(`${JSON.stringify(name)}:`)} ws ${value}`;
    properties.push({ text, required: required.has(name) });
  }
  const other = writeOtherMember(schema, names, place);
  return `"{" ws ${writeMembers(properties, other, rules)}`;
}

/** A member that the schema does not name; null: there may be none. */
function writeOtherMember(
  schema: JsonObject,
  names: readonly string[],
  { depth, writing }: Place,
): string | null {
  const rest = schema["additionalProperties"];
  const open = schema["patternProperties"] !== undefined || names.length === 0;
  const allowed = rest === undefined ? open : rest;
  if (allowed === false) return null;
  const isPlain = schema["patternProperties"] === undefined;
  const value = isPlain ? writing.write(allowed, new Set(), depth + 1) : "value";
  if (value === null) return null;
  if (names.length === 0) return writing.rules.add("member", `string ":" ws ${value}`);
  return writing.rules.add("member", `"\\"" ${addOtherKey(writing.rules, names)} ":" ws ${value}`);
}

/** Members in the order of the schema. Two rules a property: nothing was written before it, or something was. */
function writeMembers(
  properties: readonly Property[],
  other: string | null,
  rules: GrammarRules,
): string {
  let later: string;
  let first: string;
  if (other === null) {
    later = rules.add("later", 'ws "}"');
    first = '"}"';
  } else {
    later = rules.reserve("later");
    rules.define(later, `ws "}" | "," ws ${other} ${later}`);
    first = rules.add("first", `"}" | ${other} ${later}`);
  }
  for (const { text, required } of properties.toReversed()) {
    const skip = required ? "" : ` | ${first}`;
    first = rules.add("first", `${text} ${later}${skip}`);
    later = rules.add("later", `"," ws ${text} ${later}${required ? "" : ` | ${later}`}`);
  }
  return first;
}

function writeArray(schema: JsonObject, { depth, writing }: Place): string | null {
  const { rules, root } = writing;
  const leading = listLeadingItems(schema);
  const schemaOfItems = isJsonList(schema["items"]) ? schema["additionalItems"] : schema["items"];
  const writeItem = (item: JsonValue): string | null => writing.write(item, new Set(), depth + 1);
  const items = writeItem(schemaOfItems ?? true);
  const heads = leading.map((item) => writeItem(resolve(root, item) === undefined ? true : item));
  const least = Math.min(countItems(schema["minItems"], 0), itemsWrittenMax);
  let most = countItems(schema["maxItems"], Infinity);
  const impossible = heads.indexOf(null);
  if (impossible !== -1) most = Math.min(most, impossible);
  if (items === null) most = Math.min(most, heads.length);
  if (most < least) return null;
  const bounded = most <= itemsWrittenMax;
  const written = bounded ? most : Math.max(heads.length, least);
  let next = rules.reserve("item");
  rules.define(next, bounded ? 'ws "]"' : `ws "]" | "," ws ${items} ${next}`);
  for (let index = written - 1; index >= 1; index -= 1) {
    const close = index >= least ? 'ws "]" | ' : "";
    next = rules.add("item", `${close}"," ws ${heads[index] ?? items} ${next}`);
  }
  if (bounded && most === 0) return '"[" ws "]"';
  const close = least === 0 ? '"]" | ' : "";
  return `"[" ws ${rules.add("items", `${close}${heads[0] ?? items} ${next}`)}`;
}

function listLeadingItems(schema: JsonObject): readonly JsonValue[] {
  if (isJsonList(schema["prefixItems"])) return schema["prefixItems"];
  return isJsonList(schema["items"]) ? schema["items"] : [];
}

function countItems(value: JsonValue | undefined, absent: number): number {
  return typeof value === "number" && value >= 0 ? Math.floor(value) : absent;
}
