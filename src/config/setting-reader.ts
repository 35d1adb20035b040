import { resolve } from "node:path";
import { parseCredit } from "../admission/price.ts";
import {
  type Environment,
  readSecretFile,
  type ValueOf,
  type VariableName,
  variables,
} from "./environment.ts";
import { describeKind, type Variable, type VariableKind } from "./variable-kinds.ts";

/** One setting that cannot be used. */
export interface SettingProblem {
  /** The variable, what may be shown of its value, and what is allowed. */
  readonly wrong: string;
  readonly remedy: string;
}

/** A problem as one line: variable, value, what is allowed, what to do. */
export function formatProblem({ remedy, wrong }: SettingProblem): string {
  return `${wrong}; ${remedy}`;
}

/** A text and the variable that it is from. */
export interface ReadText {
  readonly name: VariableName;
  readonly text: string;
}

/** Settings that may be in a file, by the variable that names the file. */
type FileVariableName = Extract<VariableName, `${string}_FILE`>;

/** Reads settings by their kind and collects every problem, so that one start tells all of them. */
export class SettingReader {
  readonly #environment: Environment;
  readonly #folder: string;
  readonly #problems: SettingProblem[] = [];

  /** Relative paths are meant from `folder`. */
  constructor(environment: Environment, folder: string) {
    this.#environment = environment;
    this.#folder = folder;
  }

  get problems(): readonly SettingProblem[] {
    return this.#problems;
  }

  /** The text without spaces around it, else the default. */
  text(name: VariableName): string | null {
    const given = this.#environment[name]?.trim() ?? "";
    return given === "" ? variables[name].default : given;
  }

  /** The text of a setting that may stand in a file instead; null: neither is set, or it cannot be read. */
  textOrFile(name: VariableName, fileName: FileVariableName): ReadText | null {
    const text = this.text(name);
    const path = this.text(fileName);
    if (path === null) return text === null ? null : { name, text };
    if (text !== null) {
      this.problem(fileName, `${name} is set too: remove one of the two`);
      return null;
    }
    const inFile = this.#readFile(fileName, path, "the file");
    if (inFile !== null && inFile.trim() !== "") return { name: fileName, text: inFile };
    if (inFile !== null) this.problem(fileName, "the file is empty: write the value into it");
    return null;
  }

  /** Notes a file that a setting names and that cannot be read; `what` names it where the setting names several. */
  ensureReadable(name: VariableName, path: string | null, what = "the file"): void {
    if (path !== null) this.#readFile(name, path, what);
  }

  /** null: it cannot be read, which is noted. */
  #readFile(name: VariableName, path: string, what: string): string | null {
    try {
      return readSecretFile(resolve(this.#folder, path));
    } catch (error) {
      const code =
        error instanceof Error && "code" in error ? String(error.code) : "it is too long";
      this.problem(
        name,
        `${what} cannot be read (${code}): correct the path, or let this user read it`,
      );
      return null;
    }
  }

  /** The parts between commas, without empty ones. */
  list(name: VariableName): readonly string[] {
    return splitList(this.text(name) ?? "");
  }

  /** The value by the kind of the setting; one that cannot be used is noted, and its default taken. */
  value<Name extends VariableName>(name: Name): ValueOf<Name> {
    const variable: Variable = variables[name];
    const given = this.text(name);
    let value = given === null ? null : readKind(variable.kind, given);
    if (given !== null && value === null) {
      this.problem(name, adviseOn(variable, given));
      value = variable.default === null ? null : readKind(variable.kind, variable.default);
    }
    // The table has one kind for each name, and ValueOf says the same of it.
    return value as ValueOf<Name>;
  }

  /** Notes what is wrong with a setting; its value is shown only as far as it is no secret. */
  problem(name: VariableName, remedy: string): void {
    const variable: Variable = variables[name];
    const value = variable.secret === true ? "(not shown)" : showValue(this.text(name) ?? "");
    const allowed = describeKind(variable.kind).replaceAll("`", "");
    this.#problems.push({ wrong: `${name}=${value}: allowed is ${allowed}`, remedy });
  }

  /** Notes a variable that is no setting, as a value meant for a setting must not get lost. */
  noSetting(name: string, remedy: string): void {
    this.#problems.push({ wrong: `${name} is no setting of Tributary`, remedy });
  }
}

/** null: the text is none that the kind allows. */
function readKind(
  kind: VariableKind,
  text: string,
): string | number | bigint | readonly string[] | null {
  switch (kind.type) {
    case "text":
      return text;
    case "integer": {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      return value >= kind.minimum && value <= kind.maximum ? value : null;
    }
    case "credits": {
      const nanos = parseCredit(text);
      const most = parseCredit(String(kind.maximum));
      return nanos !== null && most !== null && nanos >= 0n && nanos <= most ? nanos : null;
    }
    case "choice":
      return kind.values.find((value) => value === text.toLowerCase()) ?? null;
    case "some": {
      const names = splitList(text.toLowerCase());
      const known = kind.values.filter((value) => names.includes(value));
      return names.every((name) => kind.values.includes(name)) ? known : null;
    }
    default:
      return kind satisfies never;
  }
}

function adviseOn({ default: value, kind, otherwise }: Variable, given: string): string {
  if (kind.type === "some") {
    const unknown = splitList(given.toLowerCase()).find((name) => !kind.values.includes(name));
    return `${unknown ?? given} is none of them: correct it, or remove it`;
  }
  if (kind.type === "credits") return `write it as ${value ?? "1"} or 0.25`;
  return `correct it, or remove it to get ${value ?? otherwise ?? "the default"}`;
}

/** The parts between commas, without empty ones. */
function splitList(text: string): readonly string[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "");
}

/** One line, short, and without the password that an address may carry. */
function showValue(value: string): string {
  // A key that stands where its path belongs.
  if (value.includes("-----BEGIN")) return "(not shown)";
  const shown = JSON.stringify(value.replace(/^([a-z+.-]+:\/\/)?.*@/i, "$1(not shown)@"));
  return shown.length > 200 ? `${shown.slice(0, 200)}...` : shown;
}
