import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inject } from "vitest";
import { entryUrl as urlOfSource } from "../../src/worker-url.ts";

// Stands for src/worker-url.ts in tests.

// A configuration that makes no bundle provides none.
const folder = inject("threads") ?? "";
let areSources = folder === "";

/** Threads start from their sources as long as the value lives: what they throw names the place in `src/`. */
export function startThreadsFromSources(): Disposable {
  areSources = true;
  return { [Symbol.dispose]: () => void (areSources = folder === "") };
}

/** The bundle of a thread, where there is one, else its source. */
export function entryUrl(name: string, base: string): URL {
  const bundle = join(folder, `cli/${name}.js`);
  return !areSources && existsSync(bundle) ? pathToFileURL(bundle) : urlOfSource(name, base);
}

/** A thread for one ledger after another; null: there is no bundle, or threads start from their sources. */
export function keptThreadUrl(): URL | null {
  const bundle = join(folder, "cli/kept-thread.js");
  return areSources || !existsSync(bundle) ? null : pathToFileURL(bundle);
}
