import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

// Words that hide who does something to whom: a reader would have to guess.
const vague = /\b(?:told|(?:no|some|any|every)body)\b/iu;

function filesIn(folder: string, ending: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);
}

test("documents and sources name who is meant", () => {
  const files = [
    "README.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    ...filesIn("docs", ".md"),
    ...filesIn("src", ".ts"),
    ...filesIn("engine/src", ".ts"),
    ...filesIn("console/src", ".ts"),
    ...filesIn("console/src", ".tsx"),
    // What was released is not worded anew.
  ].filter((file) => !file.startsWith("src/ledger/migrations/"));
  expect(files.length).toBeGreaterThan(200);
  const found = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        vague.test(line) ? [`${file}:${String(index + 1)}: ${line}`] : [],
      ),
  );
  expect(found).toEqual([]);
});
