import { execFileSync } from "node:child_process";
import { join, posix } from "node:path";
import { findCycles, readSources } from "./import-cycles.ts";
import { findSharedNames } from "./shared-names.ts";

// `npm run size`: how large the house is. What has a limit is held by the tests beside this file and by the linter.

const root = join(import.meta.dirname, "../..");
const parts = ["src", "engine/src", "bench", "tests", "engine/tests"];
const longestShown = 5;

/** A file or a function, and how many lines it has. */
interface Size {
  readonly name: string;
  readonly lines: number;
}

function byLines(one: Size, other: Size): number {
  return other.lines - one.lines;
}

/** Files, lines, median, 90th percentile, and the longest one. */
function describeFiles(name: string, files: readonly Size[]): string {
  const sorted = files.toSorted(byLines).toReversed();
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1]?.lines ?? 0;
  const total = sorted.reduce((sum, { lines }) => sum + lines, 0);
  const counts = [sorted.length, total, at(0.5), at(0.9), at(1)];
  const cells = counts.map((count) => String(count).padStart(8)).join("");
  return `${name.padEnd(28)}${cells}  ${sorted.at(-1)?.name ?? ""}`;
}

/** The linter's own count, with its limit so low that it names every function. */
function measureFunctions(folders: readonly string[]): readonly Size[] {
  const settings = join(import.meta.dirname, "size.oxlintrc.json");
  const lint = "node_modules/oxlint/bin/oxlint";
  let report = "";
  try {
    const options = { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 } as const;
    report = execFileSync(
      process.execPath,
      [lint, "-c", settings, "-f", "json", ...folders],
      options,
    );
  } catch (error) {
    // It exits with 1, as it has found something.
    report = (error as { readonly stdout: string }).stdout;
  }
  const { diagnostics } = JSON.parse(report) as {
    readonly diagnostics: readonly {
      readonly message: string;
      readonly filename: string;
      readonly labels: readonly { readonly span: { readonly line: number } }[];
    }[];
  };
  return diagnostics.map(({ message, filename, labels }) => ({
    name: `${filename}:${String(labels[0]?.span.line ?? 0)} ${/`([^`]+)`/.exec(message)?.[1] ?? ""}`,
    lines: Number(/\((\d+)\)/.exec(message)?.[1]),
  }));
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const sources = new Map(parts.map((part) => [part, readSources(join(root, part))]));

print(`${"".padEnd(28)}   files   lines  median    90 % longest`);
for (const [part, texts] of sources) {
  const files = [...texts].map(([file, text]) => ({
    name: `${part}/${file}`,
    lines: text.split("\n").length - 1,
  }));
  print(describeFiles(part, files));
  const folders = Map.groupBy(files, ({ name }) =>
    posix
      .dirname(name)
      .split("/")
      .slice(0, part.split("/").length + 1)
      .join("/"),
  );
  for (const [folder, inside] of [...folders].toSorted(([one], [other]) =>
    one.localeCompare(other),
  ))
    if (folder !== part && !part.includes("tests")) print(describeFiles(`  ${folder}`, inside));
}

for (const part of ["src", "engine/src"]) {
  print(`\nthe longest functions of ${part}`);
  for (const { name, lines } of measureFunctions([part]).toSorted(byLines).slice(0, longestShown))
    print(`${String(lines).padStart(6)}  ${name}`);
}

const service = sources.get("src") ?? new Map<string, string>();
print("\nfiles of one base name in src, except those of parallel folders");
for (const group of findSharedNames([...service.keys()])) print(`  ${group.join("  ")}`);
print("\nimport cycles, types included");
for (const [part, texts] of sources)
  for (const cycle of findCycles(texts)) print(`  ${part}: ${cycle.join("  ")}`);
