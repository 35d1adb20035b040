import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readDocument, rowsOf } from "./tables.ts";

const root = join(import.meta.dirname, "../..");

test("each of the ten questions in CONTRIBUTING.md leads to files that are there", () => {
  const rows = rowsOf(readDocument("CONTRIBUTING.md"), /\?$/);
  expect(rows).toHaveLength(10);
  for (const [question = "", answer = ""] of rows) {
    const files = [...answer.matchAll(/`([^`]+)`/g)].map(([, file = ""]) => file);
    expect(files, question).not.toEqual([]);
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  }
});
