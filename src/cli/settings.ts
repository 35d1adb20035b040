import { type Config, parseConfig } from "../config/config.ts";
import type { VariableName } from "../config/environment.ts";
import { formatProblem } from "../config/setting-reader.ts";
import { CommandError, type Shell } from "./command.ts";

/** The settings, or the end of the command with one line a problem. Warnings go to standard error. */
export function ensureConfig(shell: Shell): Config {
  const parsed = parseConfig(shell.environment(), shell.folder);
  for (const warning of parsed.warnings) shell.stderr.write(`warning: ${warning}\n`);
  if (parsed.ok) return parsed.config;
  throw new CommandError("settings", 2, parsed.problems.map(formatProblem).join("\n"));
}

/** By which setting the ledger is where it is. */
export function ledgerOrigin(shell: Shell): string {
  const names = [
    "TRIBUTARY_DATABASE_URL",
    "TRIBUTARY_DATABASE_URL_FILE",
    "TRIBUTARY_DATA_DIR",
  ] as const;
  return originOf(names, shell) ?? "the default";
}

/** By which setting the engine is the one that it is. */
export function engineOrigin(shell: Shell): string {
  return originOf(["TRIBUTARY_DEPLOYMENT_URL", "TRIBUTARY_MODEL"], shell) ?? "the default";
}

/** Which of these settings is in force and where it is from, as `TRIBUTARY_PORT of .env`; null: none is set. */
function originOf(names: readonly VariableName[], shell: Shell): string | null {
  const environment = shell.environment();
  const name = names.find((candidate) => (environment[candidate] ?? "").trim() !== "");
  if (name === undefined) return null;
  return `${name} ${shell.isFromFile(name) ? "in .env" : "in the environment"}`;
}
