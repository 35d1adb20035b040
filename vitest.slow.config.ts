import { defineConfig } from "vitest/config";
import { compileCache } from "./tests/setup/compile-cache.ts";

/** The slower lanes; each script names its folder: `vitest run -c vitest.slow.config.ts tests/weights`. */
export default defineConfig({
  test: {
    include: [
      "tests/{weights,package,slow,engine,engines,rolling}/**/*.test.ts",
      "engine/tests/**/*.test.ts",
    ],
    env: compileCache,
    setupFiles: ["./tests/setup/watch-answers.ts"],
    reporters: ["default", "./tests/setup/closing-line-reporter.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 100_000, interval: 20 } },
    fileParallelism: false,
  },
});
