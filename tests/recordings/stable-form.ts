import { isRecord, type JsonRecord } from "../cases/files.ts";
import type { CapturedRequest, RecordedCall } from "./recording.ts";

/** Turns what one run sent into what every run of the same client sends. */
export interface StableForm {
  call(what: string, request: CapturedRequest): RecordedCall;
}

/** Members whose text is words: a prompt, an answer, a description. The stable form has their length alone. */
const proseKeys: ReadonlySet<string> = new Set([
  "text",
  "content",
  "description",
  "instructions",
  "system",
  "output",
  "thinking",
  "signature",
  "reasoning_content",
  "encrypted_content",
  "definition",
  "title",
  "data",
  "image_url",
]);

/** Maps that a client writes in another order each time. */
const unorderedKeys: ReadonlySet<string> = new Set(["client_metadata", "metadata"]);

/** Headers of the connection, not of the client. */
const connectionHeaders: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "keep-alive",
]);

/** Headers that tell of the machine. */
const machineHeaders: ReadonlySet<string> = new Set([
  "x-stainless-arch",
  "x-stainless-os",
  "x-stainless-runtime-version",
]);

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/giu;
const prefixedId = /^([a-z]{2,8})_(?:\w{16,}|(?=\w*\d)\w{6,})$/u;
const isoTime = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)/gu;
// Hashes, seals and the like: long, and with a digit among the letters.
const longToken = /(?<![\w<])(?=[A-Za-z]*\d)[A-Za-z0-9+/_]{24,}={0,2}/gu;
const tokenCharactersMax = 64;
// In seconds and in milliseconds, from 2017 to 2049.
const timeRanges = [1_500_000_000, 1_500_000_000_000].map((min) => [min, min * (5 / 3)] as const);

/** Opens a form. `known` are texts that only this run has, with what stands for them: folders, addresses, keys. */
export function openStableForm(known: readonly (readonly [string, string])[]): StableForm {
  const longestFirst = known.toSorted(([a], [b]) => b.length - a.length);
  const named = openNames();

  function replaceKnown(text: string): string {
    let replaced = text;
    for (const [value, name] of longestFirst) replaced = replaced.replaceAll(value, name);
    return replaced;
  }

  function token(text: string, key: string): string {
    const id = prefixedId.exec(text)?.[1];
    if (id !== undefined && isIdKey(key)) return named(text, id, true);
    return text
      .replaceAll(uuid, (found) => named(found, `uuid ${key}`, false))
      .replaceAll(isoTime, "<time>")
      .replaceAll(longToken, "<token>");
  }

  function string(text: string, key: string): string {
    if (text === "") return text;
    if (proseKeys.has(key)) return prose(text);
    const json = readJson(text);
    if (json !== null) return JSON.stringify(value(json, key));
    const stable = token(replaceKnown(text), key);
    // A name that this run gave counts as one word, whatever is in it.
    const word = stable.replaceAll(/<[a-z][\w -]*>/gu, "x");
    return word.length > tokenCharactersMax || /\s/u.test(word) ? prose(text) : stable;
  }

  function value(given: unknown, key: string): unknown {
    if (typeof given === "string") return string(given, key);
    if (typeof given === "number") return number(given);
    // A list's elements are what the list is called.
    if (Array.isArray(given)) return given.map((element) => value(element, key));
    if (!isRecord(given)) return given;
    return unorderedKeys.has(key) ? fields(sortKeys(given)) : fields(given);
  }

  function fields(given: JsonRecord): JsonRecord {
    return Object.fromEntries(
      Object.entries(given).map(([key, member]) => [replaceKnown(key), value(member, key)]),
    );
  }

  function header(name: string, given: string): string {
    if (name === "authorization") return given.replace(/(?<=^\w+ ).*$/u, "<key>");
    if (name === "x-api-key") return "<key>";
    if (machineHeaders.has(name)) return "<machine>";
    const json = readJson(given);
    if (json !== null) return JSON.stringify(value(json, name));
    const stable = token(replaceKnown(given), name);
    return name === "user-agent"
      ? stable.replaceAll(/\([^)]*\)/gu, "(...)").replaceAll(/v?\d+(?:\.\d+)*/gu, "<number>")
      : stable;
  }

  return {
    call(what, { method, path, headers, body }) {
      const names = Object.keys(headers)
        .filter((name) => !connectionHeaders.has(name))
        .toSorted();
      return {
        what,
        method,
        path,
        headers: Object.fromEntries(names.map((name) => [name, header(name, headers[name] ?? "")])),
        body: body === "" ? null : fields(parseObject(body)),
      };
    },
  };
}

/** Of a time the stable form has the unit alone. */
function number(given: number): number {
  const range = timeRanges.find(([min, max]) => given >= min && given < max);
  return range === undefined ? given : range[0];
}

/** The same text always gets the same name; `<call 1>`, `<call 2>`, or `<uuid thread-id>` after where it was seen first. */
function openNames(): (text: string, kind: string, numbered: boolean) => string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  return (text, kind, numbered) => {
    const there = names.get(text);
    if (there !== undefined) return there;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const name = numbered || count > 1 ? `<${kind} ${String(count)}>` : `<${kind}>`;
    names.set(text, name);
    return name;
  };
}

function isIdKey(key: string): boolean {
  return /(?:^|[_-])(?:id|ids|key|affinity|session)$/iu.test(key);
}

// Each is four times the one before: the same text with another date or folder in it stays in its class.
const smallestClass = 16;

/** What stands for words: how long they were, roughly. What names a line, as a header does, stays, as it is read by name. */
function prose(text: string): string {
  const name = /^x-[a-z-]+: /u.exec(text)?.[0] ?? "";
  let most = smallestClass;
  while (most < text.length) most *= 4;
  return `${name}<text up to ${String(most)}>`;
}

/** A length class as a recording has it. */
export const textPlaceholder = /<text up to (\d+)>/gu;

function sortKeys(given: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(given).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function readJson(text: string): unknown {
  if (!/^[[{].*[\]}]$/su.test(text)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function parseObject(text: string): JsonRecord {
  const parsed: unknown = JSON.parse(text);
  if (!isRecord(parsed)) throw new Error(`a body that is no object: ${text.slice(0, 80)}`);
  return parsed;
}
