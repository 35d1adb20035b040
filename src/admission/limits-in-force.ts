import { limits } from "../limits.ts";

/** What of the service's settings an account has otherwise; null: as the service. */
export interface AccountLimits extends KeyLimits {
  readonly concurrentRequests: number | null;
}

/** What a key may do at most, never more than its account's; of an account: each of its keys. null: no limit of its own. */
export interface KeyLimits {
  /** Requests in any 60 seconds. */
  readonly requestsPerMinute: number | null;
  readonly outputTokensMax: number | null;
}

/** What the service's settings say of every account. */
export interface ServiceLimits {
  readonly concurrencyPerAccount: number;
  readonly requestsPerMinute: number;
}

/** What a request is held to. */
export interface LimitsInForce {
  readonly concurrentRequests: number;
  readonly requestsPerMinute: number;
  readonly outputTokensMax: number;
}

/**
 * An account's limits are above or below the service's, a key's never above its account's, and no answer is longer than any
 * may be. PostgreSQL decides the same in `ledger/postgres/`, `authorize.sql.ts` and `admit.sql.ts`: a change here is one there.
 */
export function limitsInForce(
  service: ServiceLimits,
  account: AccountLimits,
  key: KeyLimits,
): LimitsInForce {
  return {
    concurrentRequests: account.concurrentRequests ?? service.concurrencyPerAccount,
    requestsPerMinute: Math.min(
      account.requestsPerMinute ?? service.requestsPerMinute,
      key.requestsPerMinute ?? Infinity,
    ),
    outputTokensMax: Math.min(
      limits.outputAllowanceMax,
      account.outputTokensMax ?? Infinity,
      key.outputTokensMax ?? Infinity,
    ),
  };
}
