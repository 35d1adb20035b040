import { expect, test } from "vitest";
import { writeLosses } from "./losses/document.ts";
import { readDocument } from "./tables.ts";

test("docs/losses.md is what losses/tables/ gives; npm run docs:losses writes it", () => {
  expect(readDocument("docs/losses.md")).toBe(writeLosses());
});

test.each(["README.md", "docs/clients.md"])("%s leads to docs/losses.md", (path) => {
  expect(readDocument(path)).toMatch(/\]\((?:docs\/)?losses\.md\)/u);
});
