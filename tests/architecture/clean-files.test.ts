import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
// Spelled in pieces, so that this file does not find itself.
const forbidden = [
  { what: "the address of a package registry", pattern: /registry\.[a-z]+\.(?:org|com)\b/iu },
  {
    what: "the address of a package registry",
    pattern: /\b(?:files\.pythonhosted|static\.crates|deb\.debian)\./iu,
  },
  {
    what: "a home folder of one machine",
    pattern: /(?<![\w.])\/(?:root|home\/[a-z]+|Users\/[A-Za-z]+)\//u,
  },
  { what: "a work folder of one machine", pattern: /(?<![\w.])\/work\/[a-z.]+/u },
  { what: "a folder that is not in this repository", pattern: /\.\.\/shared\b/u },
];

function findForbidden(text: string): string[] {
  return forbidden.filter(({ pattern }) => pattern.test(text)).map(({ what }) => what);
}

test("no tracked file holds a registry's address or a path of one machine", () => {
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
    .split("\0")
    .filter((file) => file !== "" && file !== "tests/architecture/clean-files.test.ts")
    .filter((file) => statSync(join(root, file), { throwIfNoEntry: false })?.isFile() === true);
  expect(files).toContain("package-lock.json");
  const problems = files.flatMap((file) =>
    findForbidden(readFileSync(join(root, file), "latin1")).map((what) => `${file}: ${what}`),
  );
  expect(problems).toEqual([]);
});

test("the lock file names no download address", () => {
  const lock = readFileSync(join(root, "package-lock.json"), "utf8");
  expect(lock).not.toMatch(/"resolved"(?!: "engine",\n)|https?:\/\/[^"]*\.tgz/u);
});

test.each([
  ["https://registry.npmjs.org/undici", 1],
  ["https://registry.yarnpkg.com/undici", 1],
  ["see /work/main/src", 1],
  ["cd /home/ada/tributary", 1],
  ["see ../shared/notes.md", 1],
  ["POST /v1/work/items, ./home/, data/root/", 0],
])("finds what is forbidden in %s", (text, count) => {
  expect(findForbidden(text)).toHaveLength(count);
});
