import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { OperatorError } from "../operator-error.ts";
import { storeFault } from "./fault.ts";

/** The path of a ledger that is in memory, and no other process's. */
export const memoryPath = ":memory:";

/** Makes the ledger's folder for its owner alone. */
export function prepareFolder(path: string): void {
  try {
    makeFolder(dirname(resolve(path)));
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Makes the file for its owner alone; returns whether it is new. */
export function prepareFile(path: string): boolean {
  const fresh = !existsSync(path);
  prepareFolder(path);
  try {
    for (const file of [path, ratePath(path)]) {
      // SQLite gives -wal and -shm the mode of the file they belong to.
      const missing = !existsSync(file);
      closeSync(openSync(file, "a", 0o600));
      chmodSync(file, 0o600);
      if (missing) giveToOwner(file);
    }
  } catch (error) {
    throw unusable(path, error);
  }
  return fresh;
}

/** Node's own recursive mkdir never ends where a file system answers ENOENT inside a folder that is there, as /proc does. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process that starts at the same time may have made it.
    if (!existsSync(path)) throw error;
  }
}

/** Gives a file that the superuser's command made to the owner of its folder, who runs the service. */
function giveToOwner(file: string): void {
  if (process.getuid?.() !== 0) return;
  const { gid, uid } = statSync(dirname(resolve(file)));
  chownSync(file, uid, gid);
}

/** The rate window, beside the ledger's file. */
export function ratePath(path: string): string {
  return path === memoryPath ? memoryPath : `${path}-rate`;
}

/** A new file's name must survive a power cut as well as its content; SQLite syncs only what is inside. */
export function syncFolders(path: string): void {
  const folder = dirname(resolve(path));
  for (const name of [folder, dirname(folder)]) {
    try {
      const descriptor = openSync(name, "r");
      try {
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    } catch {
      // A folder that may not be read, or a system that cannot sync folders: nothing more can be done.
    }
  }
}

/** What a start says when the file cannot be used. */
export function unusable(path: string, cause: unknown): OperatorError {
  const fault = storeFault(cause);
  const remedy =
    fault.remedy ??
    "Check that its folder exists on a local disk, is writable and has room, or name another file in TRIBUTARY_DATABASE_URL.";
  return new OperatorError(
    "ledger_unusable",
    `The ledger ${path} cannot be opened: ${fault.message}. ${remedy}`,
    { cause },
  );
}
