import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle, src } from "./bundle.ts";

// Builds the program into dist/, which is published: `npm run build`. The engine's own dist/ is the compiler's.

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
rmSync(join(root, "engine/dist"), { recursive: true, force: true });
await bundle(dist, { filesOfSources: false });
for (const file of ["http/openapi.json", "operators/openapi.json"])
  cpSync(join(src, file), join(dist, file));
