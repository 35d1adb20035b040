import { writeFileSync } from "node:fs";
import { buildCallersDocument, documentFile } from "./callers-document.ts";

/** JSON with each member of its objects on a line of its own, down to so many levels: a change shows as the lines it changed. */
function toLines(value: unknown, levels: number): string {
  if (levels === 0 || typeof value !== "object" || value === null || Array.isArray(value))
    return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${toLines(member, levels - 1)}`,
  );
  return `{\n${members.join(",\n")}\n}`;
}

// `npm run openapi`: writes the OpenAPI document of what callers reach from the schemas that answers are held against. The file
// stays in git, as the service answers it and the schemas are not installed with it. Three levels: a line for each operation and schema.
writeFileSync(documentFile, `${toLines(buildCallersDocument(), 3)}\n`);
