import { writeFileSync } from "node:fs";
import { buildCallersDocument, documentFile } from "./callers-document.ts";

// `npm run openapi`: writes the OpenAPI document of what callers reach from the schemas that answers are held against.
writeFileSync(documentFile, `${JSON.stringify(buildCallersDocument(), null, 1)}\n`);
