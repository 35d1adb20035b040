import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const root = new URL("../../", import.meta.url);

/** One line of the trace: a file that passes the request on, and those that it calls and that call no other. */
interface TraceLine {
  readonly file: string;
  readonly leaves: readonly string[];
}

/** The lines under each heading between the marks of docs/ARCHITECTURE.md; a line that ends in a comma goes on. */
async function readDocumented(): Promise<readonly (readonly TraceLine[])[]> {
  const text = await readFile(new URL("docs/ARCHITECTURE.md", root), "utf8");
  const block = /<!-- trace:begin -->\n```\n([\s\S]*?)```\n<!-- trace:end -->/.exec(text)?.[1];
  const phases: TraceLine[][] = [];
  for (const line of (block ?? "")
    .trimEnd()
    .replaceAll(/,\n\s+/gu, ", ")
    .split("\n")) {
    if (!line.startsWith("  ")) {
      phases.push([]);
      continue;
    }
    const [file = "", leaves = ""] = line.trim().split(": ");
    phases.at(-1)?.push({ file, leaves: leaves === "" ? [] : leaves.split(", ") });
  }
  return phases;
}

const namesOf = ({ file, leaves }: TraceLine): readonly string[] => [file, ...leaves];

/** What a file imports for more than its types, named as in the trace. */
function importsOf(file: string): readonly string[] {
  const source = readFileSync(new URL(`src/${file}.ts`, root), "utf8");
  return [...source.matchAll(/^import (?!type\b)[^;"]*?from "(\.[^"]+)\.ts"/gmu)].map(
    ([, specifier = ""]) => posix.join(posix.dirname(file), specifier),
  );
}

// What the files of every folder, or of all formats, are written with.
const vocabulary = new Set(["limits", "failure", "timers", "formats/read-fields"]);

describe("the trace of docs/ARCHITECTURE.md", async () => {
  const documented = await readDocumented();
  const lines = documented.flat();
  const entered = new Set(lines.flatMap(namesOf));

  it("has the files that one streamed request enters, in its phases", async () => {
    const script = fileURLToPath(new URL("tests/architecture/record-trace.ts", root));
    const { stdout } = await promisify(execFile)(process.execPath, [script], {
      // A function out of the cache is counted less exactly.
      env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" },
      timeout: 100_000,
    });
    const recorded = JSON.parse(stdout) as Record<string, readonly string[]>;
    // The composition root is passed through wherever its clocks are read; looks for dead processes go on by themselves.
    const seen = new Set(["gateway", "ledger/dead-watch", "ledger/sqlite/presence"]);
    const fresh = (names: readonly string[]): readonly string[] => {
      const found = [...new Set(names)].filter((name) => !seen.has(name));
      for (const name of found) seen.add(name);
      return found.toSorted();
    };
    const phases = ["untilBody", "untilAnswer", "untilEnd"].map((phase) =>
      fresh((recorded[phase] ?? []).map((file) => file.slice("src/".length, -".ts".length))),
    );
    seen.clear();
    expect(documented.map((phase) => fresh(phase.flatMap(namesOf)))).toEqual(phases);
  });

  it("goes through at most 30 files that call another", () => {
    expect(new Set(lines.map(({ file }) => file)).size).toBeLessThanOrEqual(30);
  });

  it("puts behind a colon only files that call no other", () => {
    const calls = (file: string): readonly string[] =>
      importsOf(file).filter((name) => entered.has(name) && !vocabulary.has(name));
    const leaves = new Set(lines.flatMap((line) => line.leaves));
    expect([...leaves].flatMap((leaf) => calls(leaf).map((name) => `${leaf} -> ${name}`))).toEqual(
      [],
    );
    expect(lines.map(({ file }) => file).filter((file) => leaves.has(file))).toEqual([]);
  });
});
