import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The programs that are not in PATH, of those that an install needs. */
export function missingPrograms(needed: readonly string[]): readonly string[] {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return needed.filter((program) => !folders.some((folder) => existsSync(join(folder, program))));
}
