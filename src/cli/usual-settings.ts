import { variables } from "../config/environment.ts";
import type { Variable } from "../config/variable-kinds.ts";

/** One line for each setting that most operators set: its name, what it means, and what stands when it is not set. */
export function usualSettings(): string {
  const names = [
    "TRIBUTARY_HOST",
    "TRIBUTARY_PORT",
    "TRIBUTARY_DATA_DIR",
    "TRIBUTARY_DATABASE_URL",
    "TRIBUTARY_DEPLOYMENT_URL",
    "TRIBUTARY_DEPLOYMENT_API_KEY",
    "TRIBUTARY_MODEL",
    "TRIBUTARY_INPUT_PRICE",
    "TRIBUTARY_OUTPUT_PRICE",
    "TRIBUTARY_LOG_LEVEL",
  ] as const;
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map((name) => {
    const { default: value, meaning, otherwise }: Variable = variables[name];
    const shown = value ?? otherwise ?? "none";
    return `  ${name.padEnd(width)}  ${meaning} (${shown})\n`;
  });
  return lines.join("").replaceAll("`", "");
}
