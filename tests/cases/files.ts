import { readdirSync, readFileSync } from "node:fs";
import type { WireFormatName } from "../../src/formats/wire-format.ts";

/** A JSON object as a case file holds it. */
export type JsonRecord = Record<string, unknown>;

/** What kind of file a case file is, from its name. */
export type CaseFileKind =
  | "request"
  | "conversation"
  | "refused"
  | "events"
  | "options"
  | "body"
  | "stream";

/** One file under tests/cases. */
export interface CaseFile {
  readonly name: string;
  readonly url: URL;
  readonly caseId: string;
  readonly kind: CaseFileKind;
  /** null for what holds for all formats. */
  readonly format: WireFormatName | null;
}

const format = "(chat-completions|responses|messages)";
const patterns: Readonly<Record<"requests" | "generations", readonly [RegExp, CaseFileKind][]>> = {
  requests: [
    [new RegExp(`^([a-z0-9-]+)\\.${format}\\.refused\\.json$`), "refused"],
    [/^([a-z0-9-]+)\.conversation\.json$/, "conversation"],
    [new RegExp(`^([a-z0-9-]+)\\.${format}\\.json$`), "request"],
  ],
  generations: [
    [/^([a-z0-9-]+)\.events\.jsonl$/, "events"],
    [/^([a-z0-9-]+)\.options\.json$/, "options"],
    [new RegExp(`^([a-z0-9-]+)\\.${format}\\.json$`), "body"],
    [new RegExp(`^([a-z0-9-]+)\\.${format}\\.sse$`), "stream"],
  ],
};

/** Every file of one of the two folders; a name that fits no pattern is an error. */
export function caseFiles(folder: "requests" | "generations"): readonly CaseFile[] {
  const base = new URL(`./${folder}/`, import.meta.url);
  return readdirSync(base)
    .toSorted()
    .map((name) => {
      for (const [pattern, kind] of patterns[folder]) {
        const found = pattern.exec(name);
        if (found?.[1] === undefined) continue;
        const of = found[2];
        return {
          name,
          url: new URL(name, base),
          caseId: found[1],
          kind,
          format: isFormat(of) ? of : null,
        };
      }
      throw new Error(`${folder}/${name} is named like no case file`);
    });
}

/** The text of a case file. */
export function readText(file: CaseFile): string {
  return readFileSync(file.url, "utf8");
}

/** The JSON object of a case file. */
export function readJson(file: CaseFile): JsonRecord {
  const value: unknown = JSON.parse(readText(file));
  if (!isRecord(value)) throw new Error(`${file.name} holds no JSON object`);
  return value;
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFormat(text: string | undefined): text is WireFormatName {
  return text === "chat-completions" || text === "responses" || text === "messages";
}
