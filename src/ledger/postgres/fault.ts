import { DatabaseError } from "pg";
import { type FaultKind, type FaultReason, StoreFault } from "../store-fault.ts";

interface Meaning {
  readonly kind: FaultKind;
  readonly reason: FaultReason;
}

function busy(reason: FaultReason): Meaning {
  return { kind: "busy", reason };
}

function unavailable(reason: FaultReason): Meaning {
  return { kind: "unavailable", reason };
}

// SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html): a code, or else its class; any other is a bug.
const meanings: Readonly<Record<string, Meaning>> = {
  "40001": busy("locked"), // serialization_failure
  "40P01": busy("locked"), // deadlock_detected
  "55P03": busy("too-long"), // lock_not_available
  "57014": busy("too-long"), // query_canceled, by the statement timeout
  "08": unavailable("database-away"), // connection
  "25006": unavailable("database-read-only"), // a standby
  "26000": unavailable("pooler"), // a named statement that another connection has
  "42P05": unavailable("pooler"), // a named statement that was made for another client
  "28": unavailable("password-wrong"), // authorization
  "3D": unavailable("database-missing"),
  "42501": unavailable("not-permitted"),
  "53": unavailable("database-full"), // disk, memory
  "53300": unavailable("too-many-connections"),
  "57": unavailable("database-restarting"), // operator intervention: shut down, starting up
  "58": unavailable("database-corrupt"), // system error
  F0: unavailable("database-corrupt"), // configuration file
  XX: unavailable("database-corrupt"),
};

// Of these, 23505 is a name that another transaction has taken since this one looked for it: the repeat finds it taken.
const conflicts = new Set(["40001", "40P01", "23505"]);

/** Whether another transaction was in conflict with this one, which may well succeed when it is repeated. */
export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseError && conflicts.has(error.code ?? "");
}

/** Whether a lock was not free for as long as it may be waited for. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "55P03";
}

/** Whether the server answered, so that the connection is still in step. */
export function isAnswer(error: unknown): boolean {
  return error instanceof DatabaseError && error.severity === "ERROR";
}

const passing = new Set<FaultReason>([
  "database-away",
  "database-full",
  "database-restarting",
  "database-silent",
  "too-long",
  "too-many-connections",
]);

/** Whether the fault may pass with the same settings: the server is starting, or nothing listens there yet. */
export function mayPass(error: unknown): boolean {
  const meaning = meaningOf(error);
  return meaning !== null && passing.has(meaning.reason);
}

/** The fault as the ledger knows it. */
export function storeFault(error: unknown): StoreFault {
  const meaning = meaningOf(error);
  const code = codeOf(error);
  const facts = { reason: meaning?.reason ?? null, code, cause: error };
  return new StoreFault(meaning?.kind ?? "bug", `PostgreSQL: ${wordsOf(error)}`, facts);
}

function meaningOf(error: unknown): Meaning | null {
  if (error instanceof DatabaseError) {
    if (/unsupported startup parameter/.test(error.message)) return unavailable("pooler");
    const code = error.code ?? "";
    return meanings[code] ?? meanings[code.slice(0, 2)] ?? null;
  }
  if (isAggregate(error)) return meaningOf(error.errors[0]);
  if (!(error instanceof Error)) return null;
  // The system's errors: connection refused, reset, no such host or socket.
  if ("syscall" in error) return unavailable("database-away");
  // Other errors with a code come from the encrypted connection.
  if ("code" in error || /\bSSL\b/.test(error.message)) return unavailable("certificate");
  // The driver's own errors have neither class nor code.
  if (/^SASL|password/i.test(error.message)) return unavailable("password-wrong");
  if (/timeout/i.test(error.message)) return unavailable("database-silent");
  return /connection|connect|terminated/i.test(error.message) ? unavailable("database-away") : null;
}

function codeOf(error: unknown): string | null {
  if (isAggregate(error)) return codeOf(error.errors[0]);
  if (!(error instanceof Error) || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}

/** A host with several addresses gives an error for each, and none of its own. */
function wordsOf(error: unknown): string {
  if (isAggregate(error)) return error.errors.map((each) => wordsOf(each)).join("; ");
  return error instanceof Error ? error.message : String(error);
}

function isAggregate(error: unknown): error is AggregateError & { readonly errors: unknown[] } {
  return error instanceof AggregateError && error.errors.length > 0;
}
