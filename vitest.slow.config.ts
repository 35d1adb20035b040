import { defineConfig } from "vitest/config";
import { compileCache } from "./tests/setup/compile-cache.ts";

/**
 * The slower lanes; each script names its folder: `vitest run -c vitest.slow.config.ts --dir tests/weights`. A folder that is
 * only a word beside the others would not narrow them: a file is run when any word is in its path.
 */
export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    env: compileCache,
    setupFiles: ["./tests/setup/watch-answers.ts"],
    reporters: ["default", "./tests/setup/closing-line-reporter.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 100_000, interval: 20 } },
    fileParallelism: false,
  },
});
