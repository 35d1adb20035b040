import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeLosses } from "./losses/document.ts";
import { readDocument } from "./tables.ts";

test("docs/losses.md is what the tables in the source give; npm run docs:losses writes it", () => {
  expect(readDocument("docs/losses.md")).toBe(writeLosses());
});

test.each(["README.md", "docs/clients.md"])("%s leads to docs/losses.md", (path) => {
  expect(readDocument(path)).toMatch(/\]\((?:docs\/)?losses\.md\)/u);
});

test("no part of the service loads the tables, which are for documents and tests", () => {
  const source = join(import.meta.dirname, "../../src");
  const loading = globSync("**/*.ts", { cwd: source })
    .filter((file) => !file.endsWith("losses.ts"))
    .filter((file) => readFileSync(join(source, file), "utf8").includes("losses.ts"));
  expect(loading).toEqual([]);
});
