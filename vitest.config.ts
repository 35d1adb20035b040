import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { compileCache } from "./tests/setup/compile-cache.ts";

/** Files that replace a module of the service, or the timers of a library: no other file may find them replaced, or have used them before. */
const alone = [
  "tests/service/slow-heads.test.ts",
  "tests/deployment/openai-compatible/connections.test.ts",
];
const slowLanes = [
  "tests/{weights,package,slow,engines,rolling,monitoring,console}/**",
  "tests/engine/**",
];

/** The ordinary suite: everything under tests/ except the slow lanes, which have configurations of their own. */
export default defineConfig({
  test: {
    setupFiles: ["./tests/setup/watch-answers.ts"],
    alias: [
      {
        find: /^(?:\.\.\/)+worker-url\.ts$/,
        replacement: join(import.meta.dirname, "tests/setup/bundled-threads.ts"),
      },
      {
        find: /^\.\/thread-line\.ts$/,
        replacement: join(import.meta.dirname, "tests/setup/kept-threads.ts"),
      },
      {
        find: /^\.\/program-file\.ts$/,
        replacement: join(import.meta.dirname, "tests/setup/bundled-program.ts"),
      },
    ],
    reporters: ["default", "./tests/setup/closing-line-reporter.ts"],
    env: compileCache,
    // Most tests wait for sockets and processes: one at a time would leave both cores of a small machine idle.
    maxWorkers: 3,
    // Ends a test that hangs; no test is judged by its time, which on a busy machine is many times its usual one.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 100_000, interval: 20 } },
    dangerouslyIgnoreUnhandledErrors: false,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: {
          name: "together",
          include: ["tests/**/*.test.ts"],
          exclude: [...slowLanes, ...alone, "node_modules/**"],
          // A process for each file would start Node and load the same modules again 180 times, a fifth of the whole suite.
          isolate: false,
          globalSetup: [
            "./tests/setup/temporary-folder.ts",
            "./tests/setup/one-postgres.ts",
            "./tests/setup/bundle-threads.ts",
          ],
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, globalSetup: "./tests/setup/bundle-threads.ts" },
      },
    ],
  },
});
