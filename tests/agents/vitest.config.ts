import { defineConfig } from "vitest/config";
import ordinary from "../../vitest.config.ts";

/** The clients: those that are dependencies of the project, and those that `npm run test:clients` installs beside it. */
export default defineConfig({
  ...ordinary,
  root: `${import.meta.dirname}/../..`,
  test: {
    ...ordinary.test,
    include: ["tests/clients/**/*.test.ts", "tests/clients/installed/*.installed.ts"],
  },
});
