import { defineConfig } from "vitest/config";

/** The engine's own tests, the slow ones too. Run by `npm test -w tributary-engine`, or `npm run test:engine`. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["tests/**/*.test.ts"],
    reporters: ["default", "../tests/setup/closing-line-reporter.ts"],
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
