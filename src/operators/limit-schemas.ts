import { z } from "@hono/zod-openapi";
import type { AccountLimits, KeyLimits } from "../admission/limits-in-force.ts";
import type { Patch } from "../ledger/administration/changed-by.ts";
import { limits } from "../limits.ts";

/** The limits of a key, each of which may be null. */
export const keyLimits = {
  requests_per_minute: limitOf(limits.requestsPerMinuteMax),
  output_tokens_max: limitOf(limits.outputAllowanceMax),
};

/** The limits of an account. */
export const accountLimits = {
  concurrent_requests: limitOf(limits.concurrencyMax),
  ...keyLimits,
};

function limitOf(most: number) {
  return z.int().min(1).max(most).nullable().openapi({
    description: "null: none of its own, so that the service's or the account's counts",
  });
}

/** The limits as `keyLimits` has them. */
export function keyLimitsToJson(given: KeyLimits) {
  return {
    requests_per_minute: given.requestsPerMinute,
    output_tokens_max: given.outputTokensMax,
  };
}

/** The limits as `accountLimits` has them. */
export function accountLimitsToJson(given: AccountLimits) {
  return { concurrent_requests: given.concurrentRequests, ...keyLimitsToJson(given) };
}

/** What of limits to change, in the ledger's words. */
export function keyLimitsOf(given: Patch<ReturnType<typeof keyLimitsToJson>>): Patch<KeyLimits> {
  return {
    requestsPerMinute: given.requests_per_minute,
    outputTokensMax: given.output_tokens_max,
  };
}

/** The same of an account. */
export function accountLimitsOf(
  given: Patch<ReturnType<typeof accountLimitsToJson>>,
): Patch<AccountLimits> {
  return { concurrentRequests: given.concurrent_requests, ...keyLimitsOf(given) };
}
