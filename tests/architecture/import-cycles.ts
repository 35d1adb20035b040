import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { importsOf } from "./import-rules.ts";

/** The TypeScript files under a folder, by their path from there, with their text. */
export function readSources(folder: string): ReadonlyMap<string, string> {
  return new Map(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.split("/").includes("node_modules"))
      .toSorted()
      .map((file) => [file, readFileSync(join(folder, file), "utf8")]),
  );
}

/**
 * The groups of files that import each other in a circle, types included; `a -> b -> a` is one group of two. Two circles that
 * share a file are one group, as neither can be read alone.
 */
export function findCycles(sources: ReadonlyMap<string, string>): readonly (readonly string[])[] {
  const targets = new Map(
    [...sources].map(([file, source]) => [
      file,
      importsOf(source)
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => posix.join(posix.dirname(file), specifier))
        .filter((target) => sources.has(target)),
    ]),
  );
  const reachable = new Map(
    [...targets.keys()].map((file) => [file, findReachable(targets, file)]),
  );
  const groups = new Map<string, readonly string[]>();
  for (const [file, reached] of reachable) {
    if (!reached.has(file)) continue;
    const group = [...reached].filter((other) => reachable.get(other)?.has(file)).toSorted();
    groups.set(group.join(" "), group);
  }
  return [...groups.values()];
}

/** What a file imports, at once or through others; itself only where it is in a circle. */
function findReachable(
  targets: ReadonlyMap<string, readonly string[]>,
  start: string,
): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [...(targets.get(start) ?? [])];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...(targets.get(file) ?? []));
  }
  return reached;
}
