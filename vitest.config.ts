import { defineConfig } from "vitest/config";

/** The ordinary suite: everything under tests/ except the slow lanes, which have configurations of their own. */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    exclude: ["tests/{weights,package,slow}/**", "node_modules/**"],
    reporters: ["default", "./tests/setup/closing-line-reporter.ts"],
    testTimeout: 10_000,
    hookTimeout: 10_000,
    dangerouslyIgnoreUnhandledErrors: false,
    passWithNoTests: false,
  },
});
