import { type FaultKind, type FaultReason, StoreFault } from "../store-fault.ts";

interface CodeMeaning {
  readonly name: string;
  readonly kind: FaultKind;
  readonly reason: FaultReason;
}

// Primary result codes of SQLite (https://www.sqlite.org/rescode.html); any other is a bug.
const meanings: Readonly<Record<number, CodeMeaning>> = {
  3: { name: "SQLITE_PERM", kind: "unavailable", reason: "cannot-open" },
  5: { name: "SQLITE_BUSY", kind: "busy", reason: "locked" },
  6: { name: "SQLITE_LOCKED", kind: "busy", reason: "locked" },
  7: { name: "SQLITE_NOMEM", kind: "unavailable", reason: "out-of-memory" },
  8: { name: "SQLITE_READONLY", kind: "unavailable", reason: "read-only" },
  10: { name: "SQLITE_IOERR", kind: "unavailable", reason: "disk-fails" },
  11: { name: "SQLITE_CORRUPT", kind: "unavailable", reason: "corrupt" },
  13: { name: "SQLITE_FULL", kind: "unavailable", reason: "disk-full" },
  14: { name: "SQLITE_CANTOPEN", kind: "unavailable", reason: "cannot-open" },
  15: { name: "SQLITE_PROTOCOL", kind: "unavailable", reason: "locked" },
  22: { name: "SQLITE_NOLFS", kind: "unavailable", reason: "disk-full" },
  23: { name: "SQLITE_AUTH", kind: "unavailable", reason: "cannot-open" },
  26: { name: "SQLITE_NOTADB", kind: "unavailable", reason: "not-a-ledger" },
};

/** What kind of fault an error of node:sqlite is; anything else is a bug of ours. */
export function faultKind(error: unknown): FaultKind {
  if (error instanceof StoreFault) return error.kind;
  return meaningOf(error)?.kind ?? "bug";
}

/** The fault as the ledger knows it. */
export function storeFault(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const code = codeOf(error);
  const meaning = meaningOf(error);
  if (meaning === null) return new StoreFault("bug", message, { code, cause: error });
  const fault = new StoreFault(meaning.kind, message, { reason: meaning.reason, code });
  // Where SQLite was called, not where its error was read.
  if (stack !== undefined) fault.stack = stack;
  return fault;
}

function meaningOf(error: unknown): CodeMeaning | null {
  const code = resultCode(error);
  // The extended code carries the primary one in its low byte.
  return code === null ? null : (meanings[code & 0xff] ?? null);
}

/** `SQLITE_FULL`, with the extended code where it says more: `SQLITE_IOERR 778`. */
function codeOf(error: unknown): string | null {
  const code = resultCode(error);
  if (code === null) return null;
  const name = meanings[code & 0xff]?.name ?? "SQLITE";
  return code === (code & 0xff) && name !== "SQLITE" ? name : `${name} ${String(code)}`;
}

function resultCode(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error)) return null;
  return typeof error.errcode === "number" ? error.errcode : null;
}
