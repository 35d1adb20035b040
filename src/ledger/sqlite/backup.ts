import { closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import { OperatorError } from "../operator-error.ts";
import type { VerifyReport } from "../verify-journal.ts";
import { openVerify } from "./verify.ts";

/** Copies the ledger as it is at one moment into a new file, also while other processes write, and verifies the copy. */
export function backUp(path: string, copy: string): VerifyReport {
  try {
    // For its owner alone from the first byte on; SQLite takes an empty file for a missing one.
    closeSync(openSync(copy, "wx", 0o600));
  } catch (error) {
    throw notWritten(copy, error);
  }
  try {
    {
      using database = new DatabaseSync(path, { timeout: limits.ledgerBusyMs });
      database.prepare("vacuum main into ?").run(copy);
    }
    sync(copy);
    using database = new DatabaseSync(copy, { readOnly: true, readBigInts: true });
    return openVerify(database)({ against: [], listHeads: false }, 0);
  } catch (error) {
    rmSync(copy, { force: true });
    throw notWritten(copy, error);
  }
}

function sync(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function notWritten(copy: string, cause: unknown): OperatorError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new OperatorError(
    "not_possible",
    `The backup ${copy} could not be made: ${reason}. Name a file that does not exist yet, in a folder that does, with as much room as the ledger takes.`,
    { cause },
  );
}
