type Json = Record<string, unknown>;

/**
 * Components in which each object inside another has a name of its own: generators of clients make a type of each, and some of
 * them make two of one that stands inside a choice. Objects that say the same are one component.
 */
export function nameSchemas(components: Readonly<Record<string, Json>>): Record<string, Json> {
  const named: Record<string, Json> = {};
  const names = new Map<string, string>();

  function refer(schema: Json, name: string): Json {
    const inside = nameInside(schema, name);
    const { properties } = inside;
    if (!isObject(properties) || Object.keys(properties).length === 0) return inside;
    const text = JSON.stringify(inside);
    let chosen = names.get(text) ?? name;
    for (let next = 2; !names.has(text) && isTaken(chosen); next += 1)
      chosen = `${name}${String(next)}`;
    names.set(text, chosen);
    named[chosen] = inside;
    return { $ref: `#/components/schemas/${chosen}` };
  }

  function isTaken(name: string): boolean {
    return Object.hasOwn(named, name) || Object.hasOwn(components, name);
  }

  function nameInside(schema: Json, name: string): Json {
    const entries = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
      if (keyword === "properties" && isObject(value))
        return [
          keyword,
          Object.fromEntries(
            Object.entries(value).map(([member, inner]) => [
              member,
              isObject(inner) ? refer(inner, name + pascal(member)) : inner,
            ]),
          ),
        ];
      if (keyword === "items" && isObject(value)) return [keyword, refer(value, `${name}Item`)];
      if ((keyword === "anyOf" || keyword === "oneOf") && Array.isArray(value))
        return [
          keyword,
          value.map((one, at) => (isObject(one) ? refer(one, name + tagOf(one, at)) : one)),
        ];
      return [keyword, value];
    });
    return Object.fromEntries(entries);
  }

  for (const [name, schema] of Object.entries(components)) named[name] = nameInside(schema, name);
  return named;
}

/** What a member of a choice is known by: the word that it has for its kind, else its place. */
function tagOf({ properties }: Json, at: number): string {
  const members = isObject(properties) ? properties : {};
  for (const kind of ["type", "role", "status", "state"]) {
    const word = wordOf(members[kind]);
    if (word !== null) return pascal(word);
  }
  return at === 0 ? "" : String(at + 1);
}

function wordOf(schema: unknown): string | null {
  if (!isObject(schema)) return null;
  const { anyOf, const: word, enum: words } = schema;
  if (typeof word === "string") return word;
  if (Array.isArray(words)) return String(words[0]);
  return Array.isArray(anyOf) ? wordOf(anyOf[0]) : null;
}

function pascal(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/u)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
