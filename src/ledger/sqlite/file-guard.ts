import { realpathSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import { StoreFault } from "../store-fault.ts";
import { isMoved } from "./file-mark.ts";

/** Throws a StoreFault when the open file is not the ledger any more. Asked inside each transaction, before its calls. */
export type FileGuard = () => void;

interface FileState {
  readonly device: bigint;
  readonly inode: bigint;
  readonly bytes: bigint;
}

/** The files behind a path, as they were when the ledger was opened. */
export interface FileWatch {
  /** To be called when the database is open, and its log is there. */
  openGuard(database: DatabaseSync): FileGuard;
}

const memory = ":memory:";

/** Remembers which file is behind the path; to be called before SQLite opens it. */
export function watchFile(path: string): FileWatch {
  if (path === memory) return { openGuard: () => () => {} };
  const first = stateOf(path);
  return {
    openGuard(database) {
      // SQLite puts its log beside the file itself, also where the path is a link to it.
      const log = `${realpathSync(path)}-wal`;
      const index = `${realpathSync(path)}-shm`;
      const known: Readonly<Record<string, FileState | null>> = {
        [path]: first,
        [log]: stateOf(log),
        [index]: stateOf(index),
      };
      let largest = first?.bytes ?? 0n;
      let lookAtMs = -Infinity;
      const look = (): void => {
        for (const [name, before] of Object.entries(known)) ensureSame(name, before);
        const bytes = stateOf(path)?.bytes ?? 0n;
        // The file only grows, but by a VACUUM; a copy that is written over it has another size.
        if (bytes < largest) throw overwritten(path);
        largest = bytes;
      };
      look();
      const moved = isMoved(database);
      return () => {
        if (moved()) throw movedAway(path);
        const nowMs = performance.now();
        if (nowMs < lookAtMs) return;
        look();
        lookAtMs = nowMs + limits.ledgerFileLookMs;
      };
    },
  };
}

function stateOf(path: string): FileState | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? null : { device: stats.dev, inode: stats.ino, bytes: stats.size };
}

function ensureSame(path: string, before: FileState | null): void {
  const now = stateOf(path);
  if (now === null && before !== null)
    throw gone(`${path} was deleted or renamed while this process had it open.`);
  if (now?.device !== before?.device || now?.inode !== before?.inode)
    throw gone(`${path} is another file than the one that this process has open.`);
}

function overwritten(path: string): StoreFault {
  return gone(`${path} was overwritten while this process had it open: it is smaller than it was.`);
}

function movedAway(path: string): StoreFault {
  return new StoreFault(
    "unavailable",
    `The ledger in ${path} was moved to PostgreSQL while this process had it open; nothing is written to it any more.`,
    { reason: "file-moved" },
  );
}

function gone(what: string): StoreFault {
  return new StoreFault("unavailable", what, { reason: "file-gone" });
}
