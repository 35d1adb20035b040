import { type Config, parseConfig } from "../config/config.ts";
import type { VariableName } from "../config/environment.ts";
import { formatProblem } from "../config/setting-reader.ts";
import { CommandError, type Shell } from "./command.ts";

/** The settings, or the end of the command with one line a problem. Warnings go to standard error. */
export function ensureConfig(shell: Shell): Config {
  const parsed = parseConfig(shell.environment, shell.folder);
  for (const warning of parsed.warnings) shell.stderr.write(`warning: ${warning}\n`);
  if (parsed.ok) return parsed.config;
  throw new CommandError("settings", 2, parsed.problems.map(formatProblem).join("\n"));
}

/** Which of these settings is in force and where it is from, as `TRIBUTARY_PORT of .env`; null: none is set. */
export function originOf(names: readonly VariableName[], shell: Shell): string | null {
  const name = names.find((candidate) => (shell.environment[candidate] ?? "").trim() !== "");
  if (name === undefined) return null;
  return `${name} ${shell.isFromFile(name) ? "in .env" : "in the environment"}`;
}
