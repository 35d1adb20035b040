import { defineConfig } from "vitest/config";
import { compileCache } from "./tests/setup/compile-cache.ts";

/** The ordinary suite: everything under tests/ except the slow lanes, which have configurations of their own. */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    exclude: [
      "tests/{weights,package,slow,engines,rolling}/**",
      "tests/engine/**",
      "node_modules/**",
    ],
    env: compileCache,
    setupFiles: ["./tests/setup/watch-answers.ts"],
    reporters: ["default", "./tests/setup/closing-line-reporter.ts"],
    // Most tests wait for sockets and processes: one at a time would leave both cores of a small machine idle.
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    dangerouslyIgnoreUnhandledErrors: false,
    passWithNoTests: false,
  },
});
