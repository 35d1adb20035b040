import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

// Builds the pages into console/dist/, which the service serves as it lies there. `npm ci` runs this (`prepare`).

const root = import.meta.dirname;

/** The pages, with what each says where scripts do not run. */
const pages = {
  operators: "The console needs JavaScript. The API and the commands do not.",
  callers: "This page needs JavaScript. The service does not.",
};
const document = join(root, "page.html");

/** What a browser of the last two years has; nothing is rewritten for older ones. */
const targets = ["chrome125", "firefox128", "safari18"];

const vite = await import("vite").catch(() => null);
if (vite === null) {
  // `npm ci --omit=dev` leaves the tools out; the service says where the pages would be what is missing.
  process.stderr.write("The console is not built: its tools are development dependencies.\n");
} else {
  const { build } = vite;
  for (const [page, withoutScript] of Object.entries(pages)) {
    const folder = join(root, "dist", page);
    await build({
      configFile: false,
      root,
      base: "/console/",
      logLevel: "warn",
      plugins: [
        {
          name: "one-document-for-both",
          transformIndexHtml: {
            order: "pre",
            handler: (html) =>
              html.replace("%PAGE%", page).replace("%WITHOUT_SCRIPT%", withoutScript),
          },
        },
      ],
      oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
      build: {
        outDir: folder,
        assetsDir: "",
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        target: targets,
        cssTarget: targets,
        reportCompressedSize: false,
        // How long the builder's own parts took is no news of the pages.
        rollupOptions: { input: { [page]: document }, checks: { pluginTimings: false } },
      },
    });
    renameSync(join(folder, "page.html"), join(folder, "index.html"));
    compress(folder);
  }
}

/** Beside each file the same, compressed: the service compresses nothing while it serves. */
function compress(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const bytes = readFileSync(path);
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    };
    writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
    writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  }
}
