import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const root = new URL("../../", import.meta.url);

/** The files under each heading between the marks of docs/ARCHITECTURE.md. */
async function readDocumented(): Promise<readonly (readonly string[])[]> {
  const text = await readFile(new URL("docs/ARCHITECTURE.md", root), "utf8");
  const block = /<!-- trace:begin -->\n```\n([\s\S]*?)```\n<!-- trace:end -->/.exec(text)?.[1];
  const phases: string[][] = [];
  for (const line of (block ?? "").trimEnd().split("\n")) {
    if (line.startsWith("  ")) phases.at(-1)?.push(line.trim());
    else phases.push([]);
  }
  return phases;
}

it("one streamed request enters the files of docs/ARCHITECTURE.md, in its phases", async () => {
  const script = fileURLToPath(new URL("tests/architecture/record-trace.ts", root));
  // A function out of the cache is counted less exactly.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  const { stdout } = await promisify(execFile)(process.execPath, [script], {
    env,
    timeout: 20_000,
  });
  const recorded = JSON.parse(stdout) as Record<string, readonly string[]>;
  // The composition root is passed through wherever its clocks are read; looks for dead processes go on by themselves.
  const seen = new Set<string>([
    "src/gateway.ts",
    "src/ledger/dead-watch.ts",
    "src/ledger/sqlite/presence.ts",
  ]);
  const phases: string[][] = [];
  for (const phase of ["untilBody", "untilAnswer", "untilEnd"]) {
    const fresh = (recorded[phase] ?? []).filter((file) => !seen.has(file));
    for (const file of fresh) seen.add(file);
    phases.push(fresh.toSorted());
  }
  const documented = await readDocumented();
  expect(documented.map((files) => files.toSorted())).toEqual(phases);
});
