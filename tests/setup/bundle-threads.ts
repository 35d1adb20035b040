import { createHash } from "node:crypto";
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundle, src } from "../../build/bundle.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of what `setup` has made. */
    readonly threads?: string;
  }
}

const kept = join(import.meta.dirname, "../../node_modules/.cache/threads");
const keptMs = 86_400_000;

/** A thread that ledgers leave to each other. */
const keptThread = join(import.meta.dirname, "kept-thread.ts");
const madeBy = [
  keptThread,
  import.meta.filename,
  join(import.meta.dirname, "../../build/bundle.ts"),
];

/**
 * The program as it is published, made of the same sources when they have changed: every service in a test starts threads, and
 * each would read a hundred modules again, which takes three times the processor's time.
 */
export async function setup(project: TestProject): Promise<void> {
  const folder = join(kept, keyOfSources());
  // Where sources may change during a run, threads read them.
  project.provide("threads", project.vitest.config.watch ? "" : folder);
  if (project.vitest.config.watch || existsSync(folder)) return;
  for (const name of existsSync(kept) ? readdirSync(kept) : [])
    if (statSync(join(kept, name)).mtimeMs < Date.now() - keptMs)
      rmSync(join(kept, name), { recursive: true, force: true });
  const made = `${folder}.${String(process.pid)}`;
  await bundle(made, { filesOfSources: true, more: { "kept-thread": keptThread } });
  // Without it, Node reads every file twice to see that it is a module.
  writeFileSync(join(made, "package.json"), '{"type":"module"}');
  try {
    renameSync(made, folder);
  } catch {
    // Another run has made the same at the same time.
    rmSync(made, { recursive: true, force: true });
  }
}

function keyOfSources(): string {
  const key = createHash("sha256");
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).toSorted();
  for (const file of [...madeBy, ...files.map((name) => join(src, name))]) {
    const { mtimeMs, size } = statSync(file);
    key.update(`${file} ${String(mtimeMs)} ${String(size)}\n`);
  }
  return key.digest("hex").slice(0, 16);
}
