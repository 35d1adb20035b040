import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The text of a document, named from the root of the repository. */
export function readDocument(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The rows of a document's tables whose first cell is code that matches; cells without spaces around. */
export function rowsOf(document: string, firstCell: RegExp): readonly (readonly string[])[] {
  return document
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
    .filter(([first = ""]) => firstCell.test(first));
}
