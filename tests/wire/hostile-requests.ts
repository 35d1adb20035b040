// Requests that an OpenAPI document allows the shape of, with a text or a number in one place that no store can keep, or
// that a careless reader stumbles over. A new route, parameter or field of the document is asked with no further line.

/** One request of a document, hostile in one place. */
export interface HostileRequest {
  readonly method: string;
  /** With the query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly in: Where;
  /** The parameter, or the names of the body's members with dots between. */
  readonly param: string;
  /** Whether the text is none: it has U+0000, or half of a pair. */
  readonly isNoText: boolean;
}

type Where = "path" | "query" | "header" | "body";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly example?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly in: Where;
    readonly name: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
  };
}

/** An OpenAPI document as far as it says what may be asked. */
export interface AskedDocument {
  readonly paths: Readonly<Record<string, object>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** As they stand in a path or a query; `%ff` and what follows are no UTF-8. */
const escaped = [
  "%ff",
  "%ED%A0%80'%25_%5C%",
  "x".repeat(4_000),
  "9223372036854775808",
  "1e400",
  "-999999999999999",
];
const zero = "%00%C3%A1";
/** Of lists that are in another order, of rows that there are not, and of a name that there cannot be. */
const cursors = ["0", "999999999999999", "9999999999999999.req_1", "default", "a\0b"].map((text) =>
  Buffer.from(text).toString("base64url"),
);
const headerTexts = ["%00\u00ff", "x".repeat(4_000), "9223372036854775808"];
const noTexts = ["a\0b", "a\ud800"];
const bodyTexts = ["9223372036854775808'%_\\\u{1F937}\uFFFF\u202e", "x".repeat(10_000)];
/** As JSON has them. */
const numbers = ["9223372036854775808", "1e400", "-0.5"];

type Schemas = ReturnType<typeof schemasOf>;

/** An operation at its path, with what fills the places that are not hostile. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  readonly schemas: Schemas;
  readonly knownOf: KnownOf;
}

/** The ids of a path that lead to something. */
type KnownOf = (path: string, param: string) => string;

/** Every request of a document with one hostile place. What takes things away comes last, so that the others find them. */
export function hostileRequests(
  document: AskedDocument,
  knownOf: KnownOf,
): readonly HostileRequest[] {
  const schemas = schemasOf(document);
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation: operation as Operation,
      schemas,
      knownOf,
    })),
  );
  const takesAway = ({ method }: Asked): boolean => method === "DELETE";
  return [...all.filter((one) => !takesAway(one)), ...all.filter(takesAway)].flatMap((asked) => [
    ...inParameters(asked),
    ...inBody(asked),
  ]);
}

function* inParameters(asked: Asked): Generator<HostileRequest> {
  const { knownOf, operation, path, schemas } = asked;
  const usual = usualOf(asked);
  for (const { in: place, name, schema } of operation.parameters ?? []) {
    const at = { in: place, param: name } as const;
    if (place === "header") {
      for (const text of headerTexts)
        yield { ...usual, ...at, isNoText: false, headers: { [name]: text } };
      continue;
    }
    const sample = place === "path" ? knownOf(path, name) : String(schemas.sample(schema));
    const none = encodeURIComponent(sample) + zero;
    const values = [none, ...escaped, ...(name === "cursor" ? cursors : [])];
    for (const value of values)
      yield { ...usual, ...at, isNoText: value === none, target: targetOf(asked, { name, value }) };
  }
}

function* inBody(asked: Asked): Generator<HostileRequest> {
  const { operation, schemas } = asked;
  const schema = schemaOfBody(operation);
  if (schema === undefined) return;
  const usual = usualOf(asked);
  for (const { build, kind, path } of schemas.places(schema)) {
    const at = { in: "body", param: path.join(".") } as const;
    const [none, texts] = kind === "number" ? [[], []] : [noTexts, bodyTexts];
    for (const text of [...none, ...texts]) {
      const isNoText = none.includes(text);
      yield { ...usual, ...at, isNoText, body: JSON.stringify(build(text)) };
    }
    const mark = "a number";
    const before = JSON.stringify(build(mark));
    for (const digits of kind === "number" ? numbers : [])
      yield { ...usual, ...at, isNoText: false, body: before.replace(`"${mark}"`, digits) };
  }
}

/** The request without anything hostile. */
function usualOf(asked: Asked): Pick<HostileRequest, "method" | "target" | "headers" | "body"> {
  const schema = schemaOfBody(asked.operation);
  return {
    method: asked.method,
    target: targetOf(asked),
    headers: {},
    body: schema === undefined ? undefined : JSON.stringify(asked.schemas.sample(schema)),
  };
}

function schemaOfBody({ requestBody }: Operation): Schema | undefined {
  return requestBody?.content["application/json"]?.schema;
}

/** `hostile` stands as it is, and all else as it leads to something. */
function targetOf(
  { knownOf, operation, path, schemas }: Asked,
  hostile?: { readonly name: string; readonly value: string },
): string {
  const valueOf = (name: string, usual: string): string =>
    name === hostile?.name ? hostile.value : encodeURIComponent(usual);
  const query = (operation.parameters ?? [])
    .filter(
      ({ in: place, name, required }) => place === "query" && (name === hostile?.name || required),
    )
    .map(({ name, schema }) => `${name}=${valueOf(name, String(schemas.sample(schema)))}`);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    valueOf(name, knownOf(path, name)),
  );
  return query.length === 0 ? filled : `${filled}?${query.join("&")}`;
}

/** A member of a body that is a text or a number, or the name of one that may have any; `build` gives a body with a value there. */
interface Place {
  readonly path: readonly string[];
  readonly kind: "text" | "number" | "name";
  readonly build: (value: unknown) => unknown;
}

const deepest = 4;

function schemasOf({ components }: AskedDocument) {
  function resolve(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema;
    const name = schema.$ref.slice("#/components/schemas/".length);
    return resolve(components.schemas[name] ?? {});
  }

  const choicesOf = ({ allOf, anyOf, oneOf }: Schema): readonly Schema[] =>
    anyOf ?? oneOf ?? allOf ?? [];
  const typesOf = ({ type }: Schema): readonly string[] =>
    typeof type === "string" ? [type] : (type ?? []);

  /** The smallest that the schema takes, or nearly so. */
  function sample(given: Schema): unknown {
    const schema = resolve(given);
    if (schema.const !== undefined) return schema.const;
    if (schema.example !== undefined) return schema.example;
    if (schema.default !== undefined) return schema.default;
    if (schema.enum !== undefined) return schema.enum[0];
    const [choice] = choicesOf(schema);
    if (choice !== undefined) return sample(choice);
    const types = typesOf(schema);
    if (types.includes("object"))
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]),
      );
    if (types.includes("array")) return schema.items === undefined ? [] : [sample(schema.items)];
    if (types.includes("integer") || types.includes("number")) return schema.minimum ?? 1;
    if (types.includes("boolean")) return true;
    if (schema.format === "date-time") return "2026-10-01T00:00:00Z";
    return schema.format === "uri" ? "https://shop.example/" : "a";
  }

  function* all(given: Schema, depth: number): Generator<Place> {
    const schema = resolve(given);
    if (depth < 0 || schema.const !== undefined) return;
    for (const choice of choicesOf(schema)) yield* all(choice, depth);
    const types = typesOf(schema);
    const build = (value: unknown): unknown => value;
    if (types.includes("string")) yield { path: [], kind: "text", build };
    if (types.includes("integer") || types.includes("number"))
      yield { path: [], kind: "number", build };
    if (types.includes("object")) {
      const own = sample({ ...schema, type: "object" }) as object;
      for (const [name, member] of Object.entries(schema.properties ?? {}))
        for (const place of all(member, depth - 1))
          yield {
            ...place,
            path: [name, ...place.path],
            build: (value) => ({ ...own, [name]: place.build(value) }),
          };
      const { additionalProperties: rest } = schema;
      if (typeof rest === "object") {
        for (const place of all(rest, depth - 1))
          yield {
            ...place,
            path: ["color", ...place.path],
            build: (value) => ({ ...own, color: place.build(value) }),
          };
        yield {
          path: [],
          kind: "name",
          build: (value) => ({ ...own, [String(value)]: sample(rest) }),
        };
      }
    }
    if (types.includes("array") && schema.items !== undefined)
      for (const place of all(schema.items, depth - 1))
        yield { ...place, path: ["0", ...place.path], build: (value) => [place.build(value)] };
  }

  return {
    sample,
    /** Those of all shapes that a body may have, each once. */
    *places(schema: Schema): Generator<Place> {
      const seen = new Set<string>();
      for (const place of all(schema, deepest)) {
        const name = `${place.kind} ${place.path.join(".")}`;
        if (seen.has(name)) continue;
        seen.add(name);
        yield place;
      }
    },
  };
}
