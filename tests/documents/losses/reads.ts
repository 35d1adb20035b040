import { isRecord } from "../../cases/files.ts";
import { labelOf } from "./places.ts";

/** A body like another, and the places of it that are read from now on. */
export interface WatchedBody {
  readonly body: Readonly<Record<string, unknown>>;
  readonly read: ReadonlySet<string>;
}

/** Watches which fields of a body are asked for by their names. Copying an object or writing it as JSON asks for none. */
export function watchReads(body: Readonly<Record<string, unknown>>): WatchedBody {
  const read = new Set<string>();

  function watch(value: unknown, place: string): unknown {
    if (Array.isArray(value))
      return value.map((element: unknown) => watch(element, `${place}[${labelOf(element)}]`));
    return isRecord(value) ? watchObject(value, place) : value;
  }

  function watchObject(fields: Readonly<Record<string, unknown>>, place: string) {
    let copied = false;
    return new Proxy(fields, {
      get(target, name) {
        if (name === "toJSON") return () => target;
        const value: unknown = Reflect.get(target, name);
        if (typeof name === "symbol") return value;
        const at = place === "" ? name : `${place}.${name}`;
        if (!copied) read.add(at);
        return watch(value, at);
      },
      ownKeys(target) {
        copied = true;
        return Reflect.ownKeys(target);
      },
    });
  }

  return { body: watchObject(body, ""), read };
}
