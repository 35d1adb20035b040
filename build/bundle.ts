import { cpSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "vite";

/** The program's sources. */
export const src = join(import.meta.dirname, "../src");

/** The first file of the program, and of each thread and process that it starts, by the name that `entryUrl` is asked for. */
const entries: Readonly<Record<string, string>> = {
  main: "cli/main.ts",
  worker: "ledger/sqlite/worker.ts",
  "report-thread": "ledger/postgres/report-thread.ts",
  "body-thread-entry": "http/body-thread-entry.ts",
  "serving-process": "cli/serving-process.ts",
  "verify-thread": "cli/verify-thread.ts",
};

/** What runs before the program: it is not bundled, as Node parses it before it knows whether it can run the rest. */
const beforeProgram = ["cli/tributary.cjs", "config/cache-folder.cjs"];

/**
 * Writes the program into `folder` as 90 files instead of one a source: Node finds, reads and links each file by itself, in
 * every thread anew. Packages stay outside, where `npm audit` sees them.
 */
export async function bundle(
  folder: string,
  options: {
    /** Whether modules find their files (documents, pages, the engine) beside the sources; else beside `folder`. */
    readonly filesOfSources: boolean;
    /** Entries besides those of the program: name and file. */
    readonly more?: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const input = Object.entries({ ...entries, ...options.more });
  await build({
    configFile: false,
    logLevel: "error",
    root: src,
    plugins: [standInPlace(options.filesOfSources)],
    build: {
      ssr: true,
      target: "es2024",
      outDir: folder,
      emptyOutDir: true,
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(input.map(([name, file]) => [name, resolve(src, file)])),
        // All in folders below `folder`, so that one relative address finds a file from each.
        output: { entryFileNames: "cli/[name].js", chunkFileNames: "parts/[name].js" },
      },
    },
  });
  for (const file of beforeProgram) cpSync(join(src, file), join(folder, file));
}

/** Threads start from the bundle, and what is read by a path relative to a source is found from the bundle too. */
function standInPlace(filesOfSources: boolean): Plugin {
  return {
    name: "stand-in-place",
    load: (id) =>
      id === join(src, "worker-url.ts")
        ? "export const entryUrl = (name) => new URL(`../cli/${name}.js`, import.meta.url);"
        : null,
    transform(code, id) {
      if (!id.startsWith(src + sep) || id === join(src, "worker-url.ts")) return null;
      const file = relative(src, id).replaceAll(sep, "/").replace(/\.ts$/, ".js");
      return code.replaceAll(
        "import.meta.url",
        filesOfSources
          ? JSON.stringify(pathToFileURL(id).href)
          : `new URL("../${file}", import.meta.url).href`,
      );
    },
  };
}
