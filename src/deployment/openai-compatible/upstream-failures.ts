import { Failure } from "../../failure.ts";

/** The deployment is silent. */
export function late(begun: boolean): Failure {
  return new Failure(
    "deployment_timeout",
    begun
      ? "The deployment stopped in the middle of its answer. Try again."
      : "The deployment did not begin to answer in time. Try again with a shorter conversation.",
  );
}

/** The deployment was heard no more. */
export function lost(cause: Error | null): Failure {
  return new Failure(
    "deployment_failed",
    "The connection to the deployment was lost. Try again.",
    cause === null ? {} : { cause },
  );
}

/** The deployment was not heard at all. */
export function unreachable(cause: Error | null): Failure {
  return new Failure("overloaded", "The model cannot be reached at the moment. Try again.", {
    retryAfterSeconds: 5,
    ...(cause === null ? {} : { cause }),
  });
}
