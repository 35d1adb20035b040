import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeLosses } from "./losses/document.ts";

// npm run docs:losses
writeFileSync(join(import.meta.dirname, "../../docs/losses.md"), writeLosses());
