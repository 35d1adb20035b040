import { createHash } from "node:crypto";
import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of what `bundleThreads` has made. */
    readonly threads?: string;
  }
}

const src = join(import.meta.dirname, "../../src");
const kept = join(import.meta.dirname, "../../node_modules/.cache/threads");
const keptMs = 86_400_000;

/** The first file of each thread, by the name that `entryUrl` is asked for, and of one that ledgers leave to each other. */
const entries = {
  worker: "ledger/sqlite/worker.ts",
  "report-thread": "ledger/postgres/report-thread.ts",
  "body-thread-entry": "http/body-thread-entry.ts",
  "kept-thread": "../tests/setup/kept-thread.ts",
};

/**
 * Few files for the threads, made of the same sources when they have changed: every service in a test starts
 * such threads, and each would read a hundred modules again, which takes three times the processor's time.
 */
export async function setup(project: TestProject): Promise<void> {
  const folder = join(kept, keyOfSources());
  // Where sources may change during a run, threads read them.
  project.provide("threads", project.vitest.config.watch ? "" : folder);
  if (project.vitest.config.watch || existsSync(folder)) return;
  for (const name of existsSync(kept) ? readdirSync(kept) : [])
    if (statSync(join(kept, name)).mtimeMs < Date.now() - keptMs)
      rmSync(join(kept, name), { recursive: true, force: true });
  await build({
    configFile: false,
    logLevel: "error",
    root: src,
    build: {
      ssr: true,
      target: "esnext",
      outDir: `${folder}.${String(process.pid)}`,
      rolldownOptions: {
        input: Object.fromEntries(
          Object.entries(entries).map(([name, file]) => [name, join(src, file)]),
        ),
      },
    },
  });
  try {
    renameSync(`${folder}.${String(process.pid)}`, folder);
  } catch {
    // Another run has made the same at the same time.
    rmSync(`${folder}.${String(process.pid)}`, { recursive: true, force: true });
  }
}

function keyOfSources(): string {
  const key = createHash("sha256");
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).toSorted();
  for (const file of [...Object.values(entries), ...files]) {
    const { mtimeMs, size } = statSync(join(src, file));
    key.update(`${file} ${String(mtimeMs)} ${String(size)}\n`);
  }
  return key.digest("hex").slice(0, 16);
}
