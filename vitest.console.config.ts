import { mergeConfig } from "vitest/config";
import slow from "./vitest.slow.config.ts";

/** The lane of the console: one ledger with much in it is made for all files, of which two run at once, as pages mostly wait. */
export default mergeConfig(slow, {
  test: {
    globalSetup: ["./tests/console/much-ledger.ts"],
    fileParallelism: true,
    maxWorkers: 2,
  },
});
