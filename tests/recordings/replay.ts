import { isRecord, type JsonRecord } from "../cases/files.ts";
import { textPlaceholder } from "./stable-form.ts";

/** A recorded body as something to send: every text that was left out is one again, of about its length. */
export interface Replay {
  readonly body: JsonRecord;
  /** Each text with the place where it is, as `tools[2].description`; no two are the same. */
  readonly texts: ReadonlyMap<string, string>;
}

/** Makes a body of a recorded one. */
export function buildReplay(recorded: JsonRecord): Replay {
  const texts = new Map<string, string>();
  let count = 0;

  function fill(value: unknown, path: string): unknown {
    if (typeof value === "string") {
      return value.replaceAll(textPlaceholder, (_, most: string) => {
        count += 1;
        const text = wordsOf(count, Number(most));
        texts.set(path, text);
        return text;
      });
    }
    if (Array.isArray(value)) {
      return value.map((element, index) => fill(element, `${path}[${String(index)}]`));
    }
    if (!isRecord(value)) return value;
    return fillFields(value, path);
  }

  function fillFields(fields: JsonRecord, path: string): JsonRecord {
    return Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [
        key,
        fill(value, path === "" ? key : `${path}.${key}`),
      ]),
    );
  }

  return { body: fillFields(recorded, ""), texts };
}

/** A text that is found by its number, half as long as its class allows, as most are. */
function wordsOf(number: number, most: number): string {
  const name = `text-${String(number).padStart(4, "0")}.`;
  return `${name}${" word".repeat(Math.max(0, Math.floor((most / 2 - name.length) / 5)))}`;
}
