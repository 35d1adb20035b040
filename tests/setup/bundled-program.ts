import { join } from "node:path";
import { inject } from "vitest";
import { sourceFile } from "../cli/program-file.ts";

// Stands for tests/cli/program-file.ts in the ordinary suite: to start, the program reads a few files of its bundle and not three
// hundred sources, and each of its threads likewise.

export { sourceFile };

/** The program's first file in the bundle, where there is one, else among the sources. */
export function programFile(): string {
  const folder = inject("threads") ?? "";
  return folder === "" ? sourceFile : join(folder, "cli/tributary.cjs");
}
