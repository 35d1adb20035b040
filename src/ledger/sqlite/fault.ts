import type { FaultKind } from "../store-fault.ts";

// Primary result codes of SQLite (https://www.sqlite.org/rescode.html).
const busy = new Set([5 /* BUSY */, 6 /* LOCKED */]);
const unavailable = new Set([
  3 /* PERM */, 7 /* NOMEM */, 8 /* READONLY */, 10 /* IOERR */, 13 /* FULL */, 14 /* CANTOPEN */,
  15 /* PROTOCOL */, 22 /* NOLFS */, 23 /* AUTH */, 11 /* CORRUPT */, 26 /* NOTADB */,
]);

/** What kind of fault an error of node:sqlite is; anything else is a bug of ours. */
export function faultKind(error: unknown): FaultKind {
  const code = sqliteCode(error);
  if (code === null) return "bug";
  if (busy.has(code)) return "busy";
  return unavailable.has(code) ? "unavailable" : "bug";
}

function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error)) return null;
  // The extended code carries the primary one in its low byte.
  return typeof error.errcode === "number" ? error.errcode & 0xff : null;
}
