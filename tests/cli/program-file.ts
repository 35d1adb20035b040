import { join } from "node:path";

/** The program's first file among the sources. */
export const sourceFile = join(import.meta.dirname, "../../src/cli/tributary.cjs");

/** The file that tests start as the program; the ordinary suite has `tests/setup/bundled-program.ts` in this file's place. */
export function programFile(): string {
  return sourceFile;
}
