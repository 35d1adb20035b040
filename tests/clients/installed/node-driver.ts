import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { nodeFolder } from "../../agents/install.ts";

/** The command that runs a driver of this Node with the packages that were installed beside the project. */
export function nodeDriver(file: string): readonly string[] {
  const folder = join(import.meta.dirname, "drivers");
  const packages = pathToFileURL(join(folder, "packages.mjs")).href;
  return [process.execPath, "--import", packages, join(folder, file), nodeFolder];
}
