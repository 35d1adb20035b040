import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Ends a run with one plain line, `N passed, N failed`, which scripts add up without knowing the runner. */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    let passed = 0;
    // An error outside any test (an unhandled rejection, a file that does not load) counts as a failed test.
    let failed = unhandledErrors.length;
    let skipped = 0;
    for (const module of modules) {
      failed += module.errors().length;
      // A hook that throws leaves its tests skipped; without this the line would say that nothing failed.
      for (const suite of module.children.allSuites()) failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") passed += 1;
        else if (state === "failed") failed += 1;
        else skipped += 1;
      }
    }
    const skippedNote = skipped > 0 ? `, ${skipped} skipped` : "";
    process.stdout.write(`${passed} passed, ${failed} failed${skippedNote}\n`);
  }
}
