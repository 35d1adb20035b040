import { writeFileSync } from "node:fs";
import { buildOperatorsDocument } from "../operators/operators-document.ts";
import { buildCallersDocument } from "./callers-document.ts";
import { documentFile, operatorsDocumentFile } from "./document-files.ts";

/** JSON with each member of its objects on a line of its own, down to so many levels: a change shows as the lines it changed. */
function toLines(value: unknown, levels: number): string {
  if (levels === 0 || typeof value !== "object" || value === null || Array.isArray(value))
    return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${toLines(member, levels - 1)}`,
  );
  return `{\n${members.join(",\n")}\n}`;
}

// `npm run openapi`: writes the OpenAPI documents of what callers and operators reach from the schemas that answers are held
// against. The files stay in git, as the service answers them: those of callers' schemas are not installed with it, and to put the
// operators' together takes 50 to 120 ms, in which every stream would wait. Three levels: a line for each operation and schema.
writeFileSync(documentFile, `${toLines(buildCallersDocument(), 3)}\n`);
writeFileSync(operatorsDocumentFile, `${toLines(buildOperatorsDocument(), 3)}\n`);
