import * as fc from "fast-check";
import type { JsonObject, JsonValue } from "../src/conversation.ts";

/** A schema of the supported subset, and values that satisfy it. */
export interface SchemaCase {
  readonly schema: JsonValue;
  readonly instance: fc.Arbitrary<JsonValue>;
}

/** The same for the parameters of a tool. */
export interface ParametersCase {
  readonly schema: JsonObject;
  readonly instance: fc.Arbitrary<JsonValue>;
}

// No digits, as JavaScript puts such keys first.
const keyName = fc.oneof(
  fc.stringMatching(/^[a-c]{1,3}$/u),
  fc.constantFrom("with blank", 'quo"te', "back\\slash", "é", "日本", "line\nbreak", "a-b", "]^"),
);

const text = fc.string({ unit: "binary", maxLength: 8 });
const integer = fc.integer();
const number = fc.double({ noNaN: true, min: -1e300, max: 1e300 });

function leaf(type: string, instance: fc.Arbitrary<JsonValue>): fc.Arbitrary<SchemaCase> {
  return fc.constant({ schema: { type }, instance });
}

// Of numbers, the grammar leaves out those next to infinity.
const anything = fc
  .jsonValue({ maxDepth: 2 })
  .filter((value) => !JSON.stringify(value).includes("e+308")) as fc.Arbitrary<JsonValue>;

const literals: fc.Arbitrary<SchemaCase> = fc
  .uniqueArray(fc.oneof(text, integer, fc.boolean(), fc.constant(null), fc.constant([["x"]])), {
    minLength: 1,
    maxLength: 6,
    selector: (value) => JSON.stringify(value),
  })
  .map((values) => ({
    schema: values.length === 1 ? { const: values[0] ?? null } : { enum: values },
    instance: fc.constantFrom(...values),
  }));

const leaves: fc.Arbitrary<SchemaCase> = fc.oneof(
  leaf("string", text),
  leaf("integer", integer),
  leaf("number", number),
  leaf("boolean", fc.boolean()),
  leaf("null", fc.constant(null)),
  literals,
  fc.constant({ schema: { type: ["string", "null"] }, instance: fc.option(text) }),
  fc.constant({ schema: { $ref: "#/$defs/shared" }, instance: integer }),
  fc.constant({
    schema: { oneOf: [{ type: "string" }, { type: "integer" }] },
    instance: fc.oneof(text, integer),
  }),
  fc.constant({
    schema: { type: "string", enum: ["a", "ab"] },
    instance: fc.constantFrom("a", "ab"),
  }),
);

function arrayOf(item: SchemaCase, [least, extra]: readonly [number, number | null]): SchemaCase {
  const maxItems = extra === null ? null : least + extra;
  return {
    schema: {
      type: "array",
      items: item.schema,
      ...(least > 0 && { minItems: least }),
      ...(maxItems !== null && { maxItems }),
    },
    instance: fc.array(item.instance, { minLength: least, maxLength: maxItems ?? least + 3 }),
  };
}

function tupleOf(items: readonly SchemaCase[]): SchemaCase {
  return {
    schema: { type: "array", prefixItems: items.map(({ schema }) => schema), items: false },
    instance: fc.tuple(...items.map(({ instance }) => instance)),
  };
}

interface Member {
  readonly key: string;
  readonly value: SchemaCase;
  readonly required: boolean;
}

function objectOf(
  members: readonly Member[],
  rest: "absent" | "closed" | "integers",
): ParametersCase {
  const names = members.map(({ key }) => key);
  const present = members.map(({ required, value }): fc.Arbitrary<{ one: JsonValue } | null> => {
    const one = value.instance.map((instance) => ({ one: instance }));
    return required ? one : fc.option(one);
  });
  const others: fc.Arbitrary<Record<string, JsonValue>> =
    members.length === 0
      ? fc.dictionary(keyName, integer, { maxKeys: 2, noNullPrototype: true })
      : fc.constant({});
  const required = members.filter((member) => member.required).map(({ key }) => key);
  return {
    schema: {
      type: "object",
      properties: Object.fromEntries(members.map(({ key, value }) => [key, value.schema])),
      ...(required.length > 0 && { required }),
      ...(rest === "closed" && members.length > 0 && { additionalProperties: false }),
      ...(rest === "integers" && { additionalProperties: { type: "integer" } }),
    },
    instance: fc.tuple(fc.tuple(...present), others).map(([values, more]) => {
      const object: Record<string, JsonValue> = {};
      for (const [index, value] of values.entries()) {
        if (value !== null) object[names[index] ?? ""] = value.one;
      }
      for (const [key, value] of Object.entries(more))
        if (!names.includes(key)) object[key] = value;
      return object;
    }),
  };
}

function objects(depth: number): fc.Arbitrary<ParametersCase> {
  const member = fc.record({ key: keyName, value: schemas(depth - 1), required: fc.boolean() });
  const members = fc.uniqueArray(member, { maxLength: 4, selector: ({ key }) => key });
  return fc
    .tuple(members, fc.constantFrom("absent", "closed", "integers"))
    .map(([list, rest]) => objectOf(list, rest));
}

function schemas(depth: number): fc.Arbitrary<SchemaCase> {
  if (depth <= 0) return leaves;
  const inner = schemas(depth - 1);
  const counts = fc.tuple(fc.nat(2), fc.option(fc.nat(2)));
  return fc.oneof(
    { weight: 3, arbitrary: leaves },
    { weight: 2, arbitrary: objects(depth) },
    { weight: 2, arbitrary: fc.tuple(inner, counts).map(([item, count]) => arrayOf(item, count)) },
    { weight: 1, arbitrary: fc.array(inner, { minLength: 1, maxLength: 3 }).map(tupleOf) },
    {
      weight: 1,
      arbitrary: fc.array(inner, { minLength: 1, maxLength: 3 }).map((branches) => ({
        schema: { anyOf: branches.map(({ schema }) => schema) },
        instance: fc.oneof(...branches.map(({ instance }) => instance)),
      })),
    },
    { weight: 1, arbitrary: fc.constant({ schema: {}, instance: anything }) },
  );
}

/** Parameters of tools: an object, with something to refer to. `depth`: how far objects and lists are nested in it. */
export function makeParametersCases(depth: number): fc.Arbitrary<ParametersCase> {
  return objects(depth).map(({ instance, schema }) => ({
    schema: { ...schema, $defs: { shared: { type: "integer" } } },
    instance,
  }));
}
