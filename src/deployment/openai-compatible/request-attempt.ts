import type { Connection } from "./connections.ts";

/** One try of a request, on one connection. */
export interface Attempt {
  readonly connection: Connection;
  /** Whether it is the second. */
  readonly isRetry: boolean;
  /** Whether the connection had carried a request before this one. */
  reused: boolean;
  /** Whether the deployment was given the whole of it. */
  written: boolean;
}

/** The body of an attempt. A large one goes in pieces, so that it is known whether the deployment took the whole of it. */
export function bodyOfAttempt(
  attempt: Attempt,
  parts: readonly Uint8Array[],
): Uint8Array | Iterable<Uint8Array> {
  if (byteLengthOf(parts) <= pieceBytes) {
    attempt.written = true;
    return Buffer.concat(parts);
  }
  return (function* pieces() {
    for (const part of parts)
      for (let from = 0; from < part.byteLength; from += pieceBytes)
        yield part.subarray(from, from + pieceBytes);
    attempt.written = true;
  })();
}

/** Bytes of all parts together. */
export function byteLengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((bytes, part) => bytes + part.byteLength, 0);
}

/**
 * Whether the request may be sent again after it was lost without a status: nothing can have been generated that anyone
 * has seen, since an old connection was closed meanwhile, or the deployment did not even take the whole request.
 */
export function mayTryAgain(attempt: Attempt, error: Error): boolean {
  return !attempt.isRetry && isClosure(error) && (attempt.reused || !attempt.written);
}

const pieceBytes = 64 * 1024;
const closures = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE", "ECONNABORTED"]);

function isClosure(error: Error): boolean {
  return "code" in error && typeof error.code === "string" && closures.has(error.code);
}
