import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

/**
 * Takes from the OpenAPI document that OpenAI publishes (`openapi.json` of its repository `openai-openapi`) what a test
 * needs to know of answers: which members each object must have, and of which type. Words, examples and the objects of
 * features that are not offered are left out.
 *
 *     node tests/wire/published/extract-schemas.ts openapi.json && npm run format
 */

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
type JsonObject = Readonly<Record<string, Json>>;

/** Schemas of whole bodies; of frames it is every schema whose `type` is in `frameTypes`. */
const bodies = [
  "CreateChatCompletionResponse",
  "CreateChatCompletionStreamResponse",
  "Response",
  "ErrorResponse",
  "ListModelsResponse",
  "Model",
];

const frameTypes = new Set([
  "error",
  "response.created",
  "response.in_progress",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.output_item.added",
  "response.output_item.done",
  "response.content_part.added",
  "response.content_part.done",
  "response.output_text.delta",
  "response.output_text.done",
  "response.reasoning_text.delta",
  "response.reasoning_text.done",
  "response.reasoning_summary_part.added",
  "response.reasoning_summary_part.done",
  "response.reasoning_summary_text.delta",
  "response.reasoning_summary_text.done",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.delta",
  "response.custom_tool_call_input.done",
]);

/** Of a choice between objects that name their `type`, these stay. */
const partTypes = new Set([
  "message",
  "reasoning",
  "function",
  "function_call",
  "custom",
  "custom_tool_call",
  "namespace",
  "output_text",
  "reasoning_text",
  "summary_text",
  "refusal",
  "text",
  "json_object",
  "grammar",
]);

/** Keywords that say what a value must be. */
const keywords = new Set([
  "type",
  "enum",
  "const",
  "required",
  "items",
  "anyOf",
  "oneOf",
  "allOf",
  "additionalProperties",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
]);

const prefix = "#/components/schemas/";

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The one value of a schema's `type` member, such as "response.created"; null where there is none. */
function typeOf(schema: Json | undefined): string | null {
  const properties = isObject(schema) ? schema["properties"] : undefined;
  const type = isObject(properties) ? properties["type"] : undefined;
  if (!isObject(type)) return null;
  const values: Json | undefined =
    type["enum"] ?? (type["const"] === undefined ? undefined : [type["const"]]);
  const only = Array.isArray(values) && values.length === 1 ? (values as readonly Json[])[0] : null;
  return typeof only === "string" ? only : null;
}

/** The facts of a document. */
function extract(document: JsonObject): Readonly<Record<string, Json>> {
  const components = document["components"];
  const all = isObject(components) ? components["schemas"] : undefined;
  if (!isObject(all)) throw new Error("the document has no components.schemas");
  const found = new Map<string, Json>();

  function reduce(schema: Json): Json {
    if (!isObject(schema)) return schema;
    const reduced = reduceObject(schema);
    return schema["nullable"] === true ? { anyOf: [reduced, { type: "null" }] } : reduced;
  }

  function reduceObject(schema: JsonObject): Json {
    const reference = schema["$ref"];
    if (typeof reference === "string") {
      take(reference.slice(prefix.length));
      return { $ref: `#/$defs/${reference.slice(prefix.length)}` };
    }
    const kept: Record<string, Json> = {};
    for (const [name, value] of Object.entries(schema)) {
      if (name === "properties" && isObject(value))
        kept[name] = Object.fromEntries(
          Object.entries(value).map(([key, one]) => [key, reduce(one)]),
        );
      else if (keywords.has(name)) kept[name] = reduceKeyword(name, value);
    }
    return kept;
  }

  function reduceKeyword(name: string, value: Json): Json {
    if (name === "items" || name === "additionalProperties") return reduce(value);
    if ((name === "anyOf" || name === "oneOf") && Array.isArray(value)) {
      const written = (value as readonly Json[]).filter(isWritten).map(reduce);
      // A choice between what is never written has no value that fits.
      return written.length === 0 ? [false] : written;
    }
    if (name === "allOf" && Array.isArray(value)) return (value as readonly Json[]).map(reduce);
    return value;
  }

  function isWritten(schema: Json): boolean {
    const reference = isObject(schema) ? schema["$ref"] : undefined;
    const target =
      typeof reference === "string" ? schemaOf(reference.slice(prefix.length)) : schema;
    const type = typeOf(target);
    return type === null || partTypes.has(type);
  }

  function schemaOf(name: string): Json | undefined {
    return isObject(all) ? all[name] : undefined;
  }

  function take(name: string): void {
    if (found.has(name)) return;
    const schema = schemaOf(name);
    if (schema === undefined) throw new Error(`the document has no schema ${name}`);
    // Set first, for schemas that contain themselves.
    found.set(name, {});
    found.set(name, reduce(schema));
  }

  for (const name of bodies) take(name);
  const frames: Record<string, string> = {};
  for (const name of membersOf(all["ResponseStreamEvent"])) {
    const type = typeOf(all[name]);
    if (type === null || !frameTypes.has(type)) continue;
    take(name);
    frames[type] = name;
  }
  return { frames, $defs: Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

function membersOf(union: Json | undefined): readonly string[] {
  const members = isObject(union) ? union["anyOf"] : undefined;
  if (!Array.isArray(members)) throw new Error("ResponseStreamEvent is no choice between schemas");
  return (members as readonly Json[]).flatMap((one) => {
    const reference = isObject(one) ? one["$ref"] : undefined;
    return typeof reference === "string" ? [reference.slice(prefix.length)] : [];
  });
}

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("name the file openapi.json");
const bytes = readFileSync(path);
const facts = {
  of: "OpenAI's OpenAPI document",
  sha256: createHash("sha256").update(bytes).digest("hex"),
  ...extract(JSON.parse(bytes.toString("utf8")) as JsonObject),
};
writeFileSync(new URL("openai.json", import.meta.url), `${JSON.stringify(facts)}\n`);
