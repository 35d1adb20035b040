import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { isRecord, type JsonRecord } from "../cases/files.ts";

/** One request as a client wrote it. */
export interface CapturedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One request in a form that is the same in every run of the same client. */
export interface RecordedCall {
  /** What the client was doing: `turn 1`, `title`, `streamed`. No two calls of a recording have the same. */
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** null: there was no body. */
  readonly body: JsonRecord | null;
}

/** What one version of one client sends. */
export interface Recording {
  readonly client: string;
  readonly version: string;
  readonly calls: readonly RecordedCall[];
}

const folder = new URL("./", import.meta.url);

/** The file of a client: its name in small letters. */
export function recordingFile(client: string): URL {
  const name = client.toLowerCase().replaceAll(/[^a-z0-9.]+/gu, "-");
  return new URL(`${name}.json`, folder);
}

/** All recordings that there are. */
export function allRecordings(): readonly Recording[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .map((name) => readRecording(new URL(name, folder)));
}

/** The recording in a file; null when there is no such file. */
export function readRecordingOf(client: string): Recording | null {
  const file = recordingFile(client);
  const names = readdirSync(folder);
  return names.some((name) => file.href.endsWith(`/${name}`)) ? readRecording(file) : null;
}

function readRecording(file: URL): Recording {
  return parseRecording(readFileSync(file, "utf8"));
}

/** A recording from its text. */
export function parseRecording(text: string): Recording {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || !Array.isArray(value["calls"])) throw new Error("no recording");
  const calls: RecordedCall[] = [];
  for (const call of value["calls"].filter(isRecord)) {
    const body = isRecord(call["body"]) ? unfold(call["body"], calls) : null;
    const headers = isRecord(call["headers"]) ? call["headers"] : {};
    calls.push({
      what: String(call["what"]),
      method: String(call["method"]),
      path: String(call["path"]),
      headers: Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, String(v)])),
      body,
    });
  }
  return { client: String(value["client"]), version: String(value["version"]), calls };
}

/** The text of a recording. A field that an earlier call has with the same value only says so, to keep differences readable. */
export function printRecording({ client, version, calls }: Recording): string {
  const folded = calls.map((call, index) => ({
    ...call,
    body: call.body === null ? null : fold(call.body, calls.slice(0, index)),
  }));
  return `${JSON.stringify({ client, version, calls: folded }, null, 2)}\n`;
}

/** Writes a recording to its file. */
export function writeRecording(recording: Recording): URL {
  const file = recordingFile(recording.client);
  writeFileSync(file, printRecording(recording));
  return file;
}

const sameAs = "$same-as";
// Shorter ones are read faster than looked up.
const foldedCharactersMin = 200;

function fold(body: JsonRecord, earlier: readonly RecordedCall[]): JsonRecord {
  return mapFields(body, (value, field) => {
    if (JSON.stringify(value).length < foldedCharactersMin) return value;
    const same = earlier.find((call) => isDeepStrictEqual(call.body?.[field], value));
    return same === undefined ? value : { [sameAs]: same.what };
  });
}

function unfold(body: JsonRecord, earlier: readonly RecordedCall[]): JsonRecord {
  return mapFields(body, (value, field) => {
    if (!isRecord(value) || typeof value[sameAs] !== "string") return value;
    const same = earlier.find(({ what }) => what === value[sameAs]);
    if (same === undefined) throw new Error(`${field}: no call ${value[sameAs]} before`);
    return same.body?.[field];
  });
}

function mapFields(
  fields: JsonRecord,
  change: (value: unknown, field: string) => unknown,
): JsonRecord {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => [field, change(value, field)]),
  );
}
