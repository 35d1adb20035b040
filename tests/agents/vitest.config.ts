import { defineConfig } from "vitest/config";
import ordinary from "../../vitest.config.ts";

// Where projects are named, vitest takes the files of each and none of `include` beside them.
const { projects: _whole, ...test } = ordinary.test ?? {};

/** The clients: those that are dependencies of the project, and those that `npm run test:clients` installs beside it. */
export default defineConfig({
  ...ordinary,
  root: `${import.meta.dirname}/../..`,
  test: {
    ...test,
    include: ["tests/clients/**/*.test.ts", "tests/clients/installed/*.installed.ts"],
  },
});
