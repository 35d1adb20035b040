import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../cases/files.ts";
import type { RecordedCall, Recording } from "./recording.ts";

/** One thing that differs between two recordings. */
export interface Difference {
  /** Of which calls: `turn 1`. */
  readonly calls: readonly string[];
  /** `body.tools[Read].input_schema.properties.limit` */
  readonly path: string;
  /** length: a text moved to another class of length, nothing else. */
  readonly kind: "added" | "removed" | "type" | "value" | "order" | "length";
  /** null for what was added. */
  readonly before: string | null;
  /** null for what was removed. */
  readonly after: string | null;
}

type Found = Omit<Difference, "calls">;

/** What differs, the same difference in several calls once. */
export function compareRecordings(before: Recording, after: Recording): readonly Difference[] {
  const calls = [...new Set([...before.calls, ...after.calls].map(({ what }) => what))];
  const differences = new Map<string, Difference>();
  for (const what of calls) {
    const found = compareCalls(callOf(before, what), callOf(after, what));
    for (const difference of found) {
      const key = JSON.stringify(difference);
      const others = differences.get(key)?.calls ?? [];
      differences.set(key, { ...difference, calls: [...others, what] });
    }
  }
  return [...differences.values()];
}

/** Whether anything but lengths of texts differs. */
export function isStructural({ kind }: Difference): boolean {
  return kind !== "length";
}

const signs: Readonly<Record<Difference["kind"], string>> = {
  added: "+",
  removed: "-",
  type: "!",
  value: "~",
  order: ">",
  length: " ",
};

/** The differences as text, a line each, under the calls that they are of. */
export function printDifferences(differences: readonly Difference[]): string {
  const blocks = new Map<string, string[]>();
  for (const { after, before, calls, kind, path } of differences) {
    const values = [before, after].filter((value) => value !== null).join(" -> ");
    const title = calls.join(", ");
    const lines = blocks.get(title) ?? [];
    blocks.set(title, [...lines, `  ${signs[kind]} ${kind.padEnd(7)} ${path}: ${values}`]);
  }
  return [...blocks].map(([title, lines]) => [`${title}:`, ...lines].join("\n")).join("\n");
}

function callOf(recording: Recording, what: string): RecordedCall | undefined {
  return recording.calls.find((call) => call.what === what);
}

function compareCalls(
  before: RecordedCall | undefined,
  after: RecordedCall | undefined,
): readonly Found[] {
  const found: Found[] = [];
  const request = (call: RecordedCall | undefined): unknown =>
    call === undefined
      ? undefined
      : {
          request: `${call.method} ${call.path}`,
          headers: call.headers,
          ...(call.body === null ? {} : { body: call.body }),
        };
  compareValues("", [request(before), request(after)], found);
  return found;
}

type Pair = readonly [before: unknown, after: unknown];

function compareValues(path: string, [before, after]: Pair, found: Found[]): void {
  if (isDeepStrictEqual(before, after)) return;
  if (before === undefined || after === undefined) {
    found.push({
      path: path === "" ? "the whole request" : path,
      kind: before === undefined ? "added" : "removed",
      before: before === undefined ? null : show(before),
      after: after === undefined ? null : show(after),
    });
    return;
  }
  const types = [typeOf(before), typeOf(after)] as const;
  if (types[0] !== types[1]) {
    found.push({ path, kind: "type", before: show(before), after: show(after) });
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    compareLists(path, [before, after], found);
    return;
  }
  if (isRecord(before) && isRecord(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const place = path === "" ? key : `${path}.${key}`;
      compareValues(place, [before[key], after[key]], found);
    }
    return;
  }
  const json = [readJson(before), readJson(after)] as const;
  if (json[0] !== undefined && json[1] !== undefined) {
    compareValues(`${path} (JSON)`, json, found);
    return;
  }
  const sameWords = withoutLengths(before) === withoutLengths(after);
  const kind = sameWords ? "length" : "value";
  found.push({ path, kind, before: show(before), after: show(after) });
}

/** Elements are paired first when they are equal, then by what they are called; what is left over came or went. */
function compareLists(
  path: string,
  [before, after]: readonly [readonly unknown[], readonly unknown[]],
  found: Found[],
): void {
  const partners = pairElements(before, after);
  const labels = { before: labelsOf(before), after: labelsOf(after) };
  for (const [index, element] of before.entries()) {
    const partner = partners.get(index);
    const other = partner === undefined ? undefined : after[partner];
    compareValues(`${path}[${labels.before[index] ?? ""}]`, [element, other], found);
  }
  const paired = new Set(partners.values());
  for (const [index, element] of after.entries()) {
    if (paired.has(index)) continue;
    compareValues(`${path}[${labels.after[index] ?? ""}]`, [undefined, element], found);
  }
  const order = before.flatMap((_, index) => partners.get(index) ?? []);
  if (isDeepStrictEqual(order, sorted(order))) return;
  const names = (indices: readonly number[]): string =>
    indices.map((index) => labels.after[index] ?? "").join(", ");
  found.push({ path, kind: "order", before: names(order), after: names(sorted(order)) });
}

function sorted(numbers: readonly number[]): readonly number[] {
  return numbers.toSorted((a, b) => a - b);
}

function pairElements(
  before: readonly unknown[],
  after: readonly unknown[],
): ReadonlyMap<number, number> {
  const partners = new Map<number, number>();
  const free = new Set(after.keys());
  const pair = (fits: (one: unknown, other: unknown) => boolean): void => {
    for (const [index, element] of before.entries()) {
      if (partners.has(index)) continue;
      const partner = [...free].find((candidate) => fits(element, after[candidate]));
      if (partner === undefined) continue;
      partners.set(index, partner);
      free.delete(partner);
    }
  };
  pair((one, other) => isDeepStrictEqual(one, other));
  pair((one, other) => isRecord(one) && isRecord(other) && nameOf(one) === nameOf(other));
  pair((one, other) => typeof one === "string" && withoutLengths(one) === withoutLengths(other));
  return partners;
}

/** What an element is called; the second of a name is `user 2`. */
function labelsOf(elements: readonly unknown[]): readonly string[] {
  const counts = new Map<string, number>();
  return elements.map((element) => {
    const name = nameOf(element);
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name} ${String(count)}`;
  });
}

function nameOf(element: unknown): string {
  if (!isRecord(element)) return show(element);
  const inner = isRecord(element["function"]) ? element["function"]["name"] : undefined;
  const called = [element["name"], inner].find((name) => typeof name === "string");
  const parts = [element["role"], element["type"], called];
  const named = parts.filter((part) => typeof part === "string").join(" ");
  return named === "" ? "element" : named;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

const shownCharactersMax = 100;

function show(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}...` : text;
}

function withoutLengths(value: unknown): unknown {
  return typeof value === "string" ? value.replaceAll(/<text up to \d+>/gu, "<text>") : value;
}

/** JSON inside a text, as arguments of calls and some headers are. */
function readJson(value: unknown): unknown {
  if (typeof value !== "string" || !/^[[{]/u.test(value)) return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}
