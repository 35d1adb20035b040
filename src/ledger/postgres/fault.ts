import { DatabaseError } from "pg";
import { StoreFault, type FaultKind } from "../store-fault.ts";

// SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const conflicts = new Set(["40001" /* serialization_failure */, "40P01" /* deadlock_detected */]);
const busy = new Set([
  "55P03" /* lock_not_available */,
  "57014" /* query_canceled, by the statement timeout */,
]);
const unavailableClasses = new Set([
  "08" /* connection */,
  "28" /* authorization */,
  "3D" /* no such database */,
  "53" /* insufficient resources: disk, memory, connections */,
  "57" /* operator intervention: shut down, starting up */,
  "58" /* system error */,
  "F0" /* configuration file */,
  "XX" /* corrupted */,
]);
const unavailable = new Set(["25006" /* read only: a standby */]);

/** Whether the same transaction, done again now, may well succeed: others got in its way. */
export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseError && conflicts.has(error.code ?? "");
}

/** Whether the server answered, so that the connection is still in step. */
export function isAnswer(error: unknown): boolean {
  return error instanceof DatabaseError && error.severity === "ERROR";
}

const notUpClasses = new Set(["08", "53", "57"]);

/** Whether it may work in a moment with the same settings: the server is starting, or nothing listens there yet. */
export function isNotUpYet(error: unknown): boolean {
  if (error instanceof DatabaseError) return notUpClasses.has((error.code ?? "").slice(0, 2));
  if (!(error instanceof Error) || faultKind(error) !== "unavailable") return false;
  // Of the system, or of the driver, whose own have no code; what is wrong with a certificate has one.
  if ("code" in error) return "syscall" in error || isAggregate(error);
  return !/\bSSL\b/.test(error.message);
}

/** What kind of fault an error of the driver is. */
export function faultKind(error: unknown): FaultKind {
  if (error instanceof DatabaseError) {
    const code = error.code ?? "";
    if (conflicts.has(code) || busy.has(code)) return "busy";
    return unavailableClasses.has(code.slice(0, 2)) || unavailable.has(code)
      ? "unavailable"
      : "bug";
  }
  if (!(error instanceof Error)) return "bug";
  // Of the system: connection refused, reset, no such host or socket.
  if ("syscall" in error || "code" in error) return "unavailable";
  // The driver's own have neither class nor code.
  return /connection|connect|timeout|terminated/i.test(error.message) ? "unavailable" : "bug";
}

/** The fault as the ledger knows it; what is no fault of the driver stays as it is. */
export function storeFault(error: unknown): StoreFault {
  const kind = faultKind(error);
  return new StoreFault(kind, `PostgreSQL: ${wordsOf(error)}`, error);
}

/** A host with several addresses gives an error for each, and none of its own. */
function wordsOf(error: unknown): string {
  if (isAggregate(error)) return error.errors.map((each) => wordsOf(each)).join("; ");
  return error instanceof Error ? error.message : String(error);
}

function isAggregate(error: unknown): error is AggregateError & { readonly errors: unknown[] } {
  return error instanceof AggregateError && error.errors.length > 0;
}
