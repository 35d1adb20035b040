import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "vite";
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

/**
 * The first file of each thread and process, by the name that `entryUrl` is asked for, of a thread that ledgers leave to each
 * other, and of the program.
 */
const entries = {
  worker: "ledger/sqlite/worker.ts",
  "report-thread": "ledger/postgres/report-thread.ts",
  "body-thread-entry": "http/body-thread-entry.ts",
  "kept-thread": "../tests/setup/kept-thread.ts",
  "serving-process": "cli/serving-process.ts",
  "verify-thread": "cli/verify-thread.ts",
  "cli/main": "cli/main.ts",
};

/** What runs before the program: it is not bundled, as Node parses it before it knows whether it can run the rest. */
const beforeProgram = ["cli/tributary.cjs", "config/cache-folder.cjs"];

/**
 * Few files for the threads and the program, made of the same sources when they have changed: every service in a test starts
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
    plugins: [standInPlace(folder)],
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
  for (const file of beforeProgram)
    cpSync(join(src, file), join(`${folder}.${String(process.pid)}`, file));
  try {
    renameSync(`${folder}.${String(process.pid)}`, folder);
  } catch {
    // Another run has made the same at the same time.
    rmSync(`${folder}.${String(process.pid)}`, { recursive: true, force: true });
  }
}

/** What is bundled finds its files where its source would (pages, documents, the engine), and its threads in the bundle. */
function standInPlace(folder: string): Plugin {
  const bundle = JSON.stringify(`${pathToFileURL(folder).href}/`);
  return {
    name: "stand-in-place",
    load: (id) =>
      id === join(src, "worker-url.ts")
        ? `export const entryUrl = (name) => new URL(name + ".js", ${bundle});`
        : null,
    transform: (code, id) =>
      id.startsWith(src)
        ? code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
        : null,
  };
}

function keyOfSources(): string {
  const key = createHash("sha256");
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).toSorted();
  const maker = join("../tests/setup", basename(import.meta.filename));
  for (const file of [maker, ...Object.values(entries), ...files]) {
    const { mtimeMs, size } = statSync(join(src, file));
    key.update(`${file} ${String(mtimeMs)} ${String(size)}\n`);
  }
  return key.digest("hex").slice(0, 16);
}
