import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import { faultKind } from "./fault.ts";

// A process that serves keeps a transaction open on a small file of its own beside the ledger: the kernel drops its
// lock with the process, however that ends. A process id means nothing in another container.

/** The sign that a process lives that has the ledger open. */
export interface Presence extends Disposable {
  /** Takes the lock again when its file was removed; false: until now this process looked dead to others. */
  ensure(): boolean;
}

/** Says that the process with this id lives, until it is disposed or the process ends. */
export function openPresence(ledger: string, owner: string): Presence {
  const path = fileOf(ledger, owner);
  let database = lock(path);
  return {
    ensure() {
      if (existsSync(path)) return true;
      database.close();
      database = lock(path);
      return false;
    },
    [Symbol.dispose]: () => {
      // The name goes before the lock: a file without a lock would look like a dead process.
      rmSync(path, { force: true });
      if (database.isOpen) database.close();
    },
  };
}

/** Whether the process with this id lives. One whose file cannot be looked at counts as living. */
export function isPresent(ledger: string, owner: string): boolean {
  return isLocked(fileOf(ledger, owner));
}

/** How many processes say that they have the ledger open. */
export function countPresent(ledger: string): number {
  return presenceFiles(ledger).filter((path) => isLocked(path)).length;
}

/**
 * Whether other services say that they have the ledger open: by the names alone, also of one that was just killed. The
 * serving processes of one service have its name before their own.
 */
export function hasOthers(ledger: string, owner: string | undefined): boolean {
  const { folder, prefix } = placeOf(ledger);
  const own = owner === undefined ? null : prefix + owner;
  return readdirSync(folder).some(
    (name) =>
      name.startsWith(prefix) && (own === null || (name !== own && !name.startsWith(`${own}-`))),
  );
}

/** The file whose lock is the turn to write. */
export function turnFileOf(ledger: string): string {
  return `${existsSync(ledger) ? realpathSync(ledger) : resolve(ledger)}-turn`;
}

/** Removes the files of processes that were killed. */
export function removeLeftOvers(ledger: string, nowMs: number): void {
  for (const path of presenceFiles(ledger)) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined || nowMs - stats.mtimeMs < limits.presenceLeftOverMs || isLocked(path))
      continue;
    rmSync(path, { force: true });
  }
}

function lock(path: string): DatabaseSync {
  // For its owner alone, as the ledger is.
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const database = new DatabaseSync(path, { timeout: 0 });
  // Nothing is ever written to it, so it needs no journal file.
  database.exec("pragma journal_mode = memory; begin exclusive");
  return database;
}

function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    using database = new DatabaseSync(path, { readOnly: true, timeout: 0 });
    database.prepare("select count(*) from sqlite_schema").get();
    return false;
  } catch (error) {
    // Removed at this moment: its process has ended in order.
    return faultKind(error) === "busy" || existsSync(path);
  }
}

function presenceFiles(ledger: string): readonly string[] {
  const { folder, prefix } = placeOf(ledger);
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(folder, name));
}

function fileOf(ledger: string, owner: string): string {
  const { folder, prefix } = placeOf(ledger);
  return join(folder, prefix + owner);
}

/** Beside the file itself: where links lead to one ledger, all of its processes look in one place. */
function placeOf(ledger: string): { readonly folder: string; readonly prefix: string } {
  const path = existsSync(ledger) ? realpathSync(ledger) : resolve(ledger);
  return { folder: dirname(path), prefix: `${basename(path)}-process-` };
}
