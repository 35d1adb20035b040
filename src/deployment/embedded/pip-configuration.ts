import { readFile } from "node:fs/promises";
import { devNull, homedir } from "node:os";
import { join } from "node:path";

/** Variables of a process, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where packages come from, as pip would read it from its variables and configuration files. */
export interface PipSettings {
  /** null: nothing is configured, and pip would ask the public index. */
  readonly indexUrl: string | null;
  /** Asked after the index. */
  readonly extraIndexUrls: readonly string[];
  /** Folders and pages with packages, searched before the indexes. */
  readonly findLinks: readonly string[];
  /** Whether indexes must not be asked. */
  readonly noIndex: boolean;
  /** A file of certificates to trust instead of the usual ones. */
  readonly certificateFile: string | null;
}

/** The machine as far as pip's configuration depends on it. */
export interface PipMachine {
  readonly environment: Environment;
  readonly platform: NodeJS.Platform;
  readonly home: string;
}

/** The machine that this process runs on. */
export function thisMachine(environment: Environment): PipMachine {
  return { environment, platform: process.platform, home: homedir() };
}

/** Later sources win, as in pip: files for everyone, of the user, of the environment, named, then variables. */
export async function readPipSettings(machine: PipMachine): Promise<PipSettings> {
  const { environment } = machine;
  const values = new Map<string, string>();
  for (const file of configurationFiles(machine)) {
    const text = await readOptional(file);
    if (text === null) continue;
    const sections = parseSections(text);
    for (const section of ["global", "download"]) {
      for (const [key, value] of sections.get(section) ?? []) values.set(key, value);
    }
  }
  for (const key of ["index-url", "extra-index-url", "find-links", "no-index", "cert"]) {
    const value = environment[`PIP_${key.toUpperCase().replaceAll("-", "_")}`]?.trim();
    if (value !== undefined && value !== "") values.set(key, value);
  }
  const list = (key: string): string[] =>
    (values.get(key) ?? "").split(/\s+/).filter((item) => item !== "");
  const certificateFile = values.get("cert") ?? "";
  return {
    indexUrl: values.get("index-url") ?? null,
    extraIndexUrls: list("extra-index-url"),
    findLinks: list("find-links"),
    noIndex: /^(?:1|y|yes|t|true|on)$/i.test(values.get("no-index") ?? ""),
    certificateFile: certificateFile === "" ? null : certificateFile,
  };
}

function configurationFiles({ environment, platform, home }: PipMachine): string[] {
  const named = environment["PIP_CONFIG_FILE"] ?? "";
  if (named !== "" && named === devNull) return [];
  const virtual = environment["VIRTUAL_ENV"] ?? "";
  const name = platform === "win32" ? "pip.ini" : "pip.conf";
  return [
    ...filesForEveryone(environment, platform),
    // A named file stands in for the user's own.
    ...(named === "" ? filesOfTheUser({ environment, platform, home }) : []),
    ...(virtual === "" ? [] : [join(virtual, name)]),
    ...(named === "" ? [] : [named]),
  ];
}

function filesForEveryone(environment: Environment, platform: NodeJS.Platform): string[] {
  if (platform === "win32") return [join(environment["ProgramData"] ?? "", "pip", "pip.ini")];
  if (platform === "darwin") return ["/Library/Application Support/pip/pip.conf", "/etc/pip.conf"];
  const folders = environment["XDG_CONFIG_DIRS"] ?? "/etc/xdg";
  const shared = folders.split(":").filter((folder) => folder !== "");
  return [...shared.map((folder) => join(folder, "pip", "pip.conf")), "/etc/pip.conf"];
}

function filesOfTheUser({ environment, platform, home }: PipMachine): string[] {
  if (platform === "win32") {
    return [
      join(home, "pip", "pip.ini"),
      join(environment["APPDATA"] ?? join(home, "AppData", "Roaming"), "pip", "pip.ini"),
    ];
  }
  const folder = environment["XDG_CONFIG_HOME"] ?? join(home, ".config");
  return [
    join(home, ".pip", "pip.conf"),
    join(folder, "pip", "pip.conf"),
    ...(platform === "darwin" ? [join(home, "Library/Application Support/pip/pip.conf")] : []),
  ];
}

async function readOptional(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch {
    // pip, too, passes over a file that it may not read.
    return null;
  }
}

/** Python's configparser, as far as pip's files use it: sections, `=` or `:`, comments, indented continuations. */
function parseSections(text: string): Map<string, Map<string, string>> {
  const sections = new Map<string, Map<string, string>>();
  let section: Map<string, string> | null = null;
  let lastKey: string | null = null;
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#") || trimmed.startsWith(";")) continue;
    const header = /^\[(.+)\]$/.exec(line)?.[1];
    if (header !== undefined) {
      section = sections.get(header) ?? new Map<string, string>();
      sections.set(header, section);
      lastKey = null;
    } else if (/^\s/.test(line) && lastKey !== null && section !== null) {
      section.set(lastKey, `${section.get(lastKey) ?? ""} ${trimmed}`.trim());
    } else {
      const [, key, value] = /^([^=:]+?)\s*[=:]\s*(.*)$/.exec(trimmed) ?? [];
      if (key === undefined || value === undefined) continue;
      lastKey = key.toLowerCase().replaceAll("_", "-");
      section?.set(lastKey, value);
    }
  }
  return sections;
}
