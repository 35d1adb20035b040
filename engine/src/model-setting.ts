import { closeSync, openSync, readSync } from "node:fs";
import { basename, resolve } from "node:path";
import { catalog, findCatalogEntry, generalSampling, type CatalogEntry } from "./catalog.ts";
import type { SamplingDefaults } from "./conversation.ts";
import { parseModelAddress, type ModelAddress } from "./model-address.ts";

/** Which model is meant. */
export type ModelChoice =
  | {
      readonly type: "catalog";
      readonly name: string;
      readonly entry: CatalogEntry;
      readonly sampling: SamplingDefaults;
    }
  | {
      readonly type: "address";
      readonly name: string;
      readonly address: ModelAddress;
      readonly sampling: SamplingDefaults;
    }
  | {
      readonly type: "file";
      readonly name: string;
      readonly path: string;
      readonly sampling: SamplingDefaults;
    };

/** Raised for a TRIBUTARY_MODEL that names no model; the message says what is allowed. */
export class ModelSettingError extends Error {
  override readonly name = "ModelSettingError";
  readonly variable = "TRIBUTARY_MODEL";
}

/** The model that TRIBUTARY_MODEL names; null takes the catalog's default. Throws a ModelSettingError. */
export function parseModelSetting(setting: string | null): ModelChoice {
  const choice = chooseModel(setting);
  if (typeof choice !== "string") return choice;
  // An address may hold a password.
  const shown = (setting ?? "").replace(/^(https?:\/\/)[^/]*@/i, "$1(not shown)@");
  throw new ModelSettingError(`TRIBUTARY_MODEL=${shown}: ${choice}.`);
}

/** The model of that name, address or path; null: the catalog's default. A text says what is wrong. */
export function chooseModel(setting: string | null): ModelChoice | string {
  const value = setting?.trim() ?? "";
  const entry = value === "" ? catalog[0] : findCatalogEntry(value);
  if (entry !== null) return { type: "catalog", name: entry.name, entry, sampling: entry.sampling };
  const parsed = parseModelAddress(value);
  if (parsed !== null) {
    if (!parsed.ok) return parsed.problem;
    const { address } = parsed;
    return { type: "address", name: address.name, address, sampling: generalSampling };
  }
  const path = resolve(value);
  const problem = problemOfFile(path);
  if (problem !== null) {
    const names = catalog.map((known) => known.name).join(", ");
    return (
      `${problem}. Give the path of a .gguf file, an address (hf:OWNER/REPOSITORY/FILE.gguf or https://...), ` +
      `or a name of the catalog: ${names}`
    );
  }
  const file = basename(path);
  const known = catalog.find((candidate) => candidate.file === file);
  return { type: "file", name: file, path, sampling: known?.sampling ?? generalSampling };
}

const magic = "GGUF";

function problemOfFile(path: string): string | null {
  try {
    const file = openSync(path, "r");
    try {
      const start = Buffer.alloc(magic.length);
      readSync(file, start, 0, magic.length, 0);
      return start.toString("latin1") === magic ? null : "this file is not in the GGUF format";
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "ENOENT") return "there is no such file, and no such name in the catalog";
    if (code === "EISDIR") return "this is a folder";
    return `the file cannot be read (${String(code)})`;
  }
}
