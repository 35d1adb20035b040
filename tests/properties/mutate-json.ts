/** One change somewhere inside a JSON value. `place` chooses where, modulo the number of places. */
export interface Mutation {
  readonly kind: "replace" | "remove" | "duplicate" | "add" | "move" | "stretch";
  readonly place: number;
  readonly value: unknown;
}

type Container = { [key: string]: unknown } | unknown[];

/** A copy of a JSON value with one change. */
export function mutate(root: unknown, { kind, place, value }: Mutation): unknown {
  const copy: unknown = structuredClone(root);
  const places = [...placesOf(copy)];
  const chosen = places[place % Math.max(places.length, 1)];
  if (chosen === undefined) return copy;
  const { container, key } = chosen;
  const current = read(container, key);
  switch (kind) {
    case "replace":
      write(container, key, value);
      return copy;
    case "remove":
      if (Array.isArray(container)) container.splice(Number(key), 1);
      else Reflect.deleteProperty(container, key);
      return copy;
    case "duplicate":
      if (Array.isArray(container)) container.splice(Number(key), 0, structuredClone(current));
      else write(container, `${key}_again`, structuredClone(current));
      return copy;
    case "add":
      if (Array.isArray(current)) current.push(value);
      else if (isContainer(current)) write(current, "x_added", value);
      return copy;
    case "move":
      if (Array.isArray(current)) current.reverse();
      return copy;
    case "stretch":
      if (typeof current === "string") write(container, key, current + current);
      if (typeof current === "number") write(container, key, current * 1.5);
      return copy;
    default:
      kind satisfies never;
      return copy;
  }
}

function* placesOf(value: unknown): Generator<{ container: Container; key: string }> {
  if (!isContainer(value)) return;
  for (const key of Object.keys(value)) {
    yield { container: value, key };
    yield* placesOf(read(value, key));
  }
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

function read(container: Container, key: string): unknown {
  return Array.isArray(container) ? container[Number(key)] : container[key];
}

function write(container: Container, key: string, value: unknown): void {
  if (Array.isArray(container)) container[Number(key)] = value;
  else
    Object.defineProperty(container, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
}
