import { readFileSync } from "node:fs";

const file = new URL("../../package.json", import.meta.url);

/** The version of the package. */
export const version = readVersion(JSON.parse(readFileSync(file, "utf8")));

function readVersion(description: unknown): string {
  const isObject = typeof description === "object" && description !== null;
  if (isObject && "version" in description && typeof description.version === "string")
    return description.version;
  throw new Error("package.json has no version");
}
