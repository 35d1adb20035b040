import { posix } from "node:path";

/** Folders whose files are halves of one thing, and have the same name for the same role. */
const parallelFolders: readonly (readonly string[])[] = [
  ["ledger/sqlite", "ledger/postgres"],
  ["ledger/migrations/sqlite", "ledger/migrations/postgres"],
  ["formats/chat-completions", "formats/responses", "formats/messages"],
];

/**
 * Groups of files of the service with one base name, except where each lies in another one of parallel folders. The file of a command is
 * not counted: it has the name of its command, which is often the name of what the command shows.
 */
export function findSharedNames(files: readonly string[]): readonly (readonly string[])[] {
  const counted = files.filter((file) => !file.startsWith("cli/"));
  const byName = Map.groupBy(counted, (file) => posix.basename(file));
  return [...byName.values()].filter((group) => group.length > 1 && !areParallel(group));
}

function areParallel(group: readonly string[]): boolean {
  return parallelFolders.some((folders) =>
    group.every((file) => folders.includes(posix.dirname(file))),
  );
}
