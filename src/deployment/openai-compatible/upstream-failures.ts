import { Failure } from "../../failure.ts";

/** Nothing came from the deployment for too long. */
export function late(begun: boolean): Failure {
  return new Failure(
    "deployment_timeout",
    begun
      ? "The deployment stopped in the middle of its answer. Try again."
      : "The deployment did not begin to answer in time. Try again with a shorter conversation.",
  );
}

/** The connection broke during the answer. */
export function lost(cause: Error | null): Failure {
  return new Failure(
    "deployment_failed",
    "The connection to the deployment was lost. Try again.",
    cause === null ? {} : { cause },
  );
}

/** The deployment could not be reached, or closed every connection without a byte. */
export function unreachable(cause: Error | null): Failure {
  return new Failure("overloaded", "The model cannot be reached at the moment. Try again.", {
    retryAfterSeconds: 5,
    ...(cause === null ? {} : { cause }),
  });
}
