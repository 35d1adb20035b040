import { formatCredit } from "../admission/price.ts";
import { type CreditShortage, Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import { budgetLeft, type BudgetState } from "./budget.ts";
import type { KeyScope } from "./records.ts";
import type { CreditNanos } from "./scalars.ts";
import type { RateState } from "./ledger.ts";

// The words of each refusal, the same from both stores.

// Generations last seconds to minutes, and clients give up after two or three tries.
const concurrencyRetrySeconds = 2;

/** Throws where the verdict of `authorize` or `admit` is about the key or the account; `scope` is what the key may lack. */
export function throwRefusal(verdict: string, scope: KeyScope | null): void {
  if (verdict === "unknown") throw unknownKey();
  if (verdict === "replaced") throw replacedKey();
  if (verdict === "revoked") throw revokedKey();
  if (verdict === "expired") throw expiredKey();
  if (verdict === "paused") throw pausedKey();
  if (verdict === "scope" && scope !== null) throw keyWithout(scope);
  if (verdict === "disabled") throw disabledAccount();
}

/** A missing, malformed, unknown or wrong key: one text for all four, so that it does not help a guess. */
export function unknownKey(): Failure {
  return new Failure(
    "authentication",
    "The API key is missing or not valid. Send it whole, as it was printed when it was made (trib_...), as `Authorization: Bearer KEY` or `x-api-key: KEY`.",
  );
}

// Only who has the key is answered so: operators may be shown which one it was.
const ofKnownKey = { keyIsKnown: true } as const;

/** The right key, revoked. */
export function revokedKey(): Failure {
  return new Failure(
    "authentication",
    "This API key has been revoked. Ask the operator of this service for another one.",
    ofKnownKey,
  );
}

/** A secret that was good before a rotation. */
function replacedKey(): Failure {
  return new Failure(
    "authentication",
    "This API key has been replaced by a new one. Use the new one, or ask the operator of this service for it.",
    ofKnownKey,
  );
}

/** The right key, whose time is over. */
function expiredKey(): Failure {
  return new Failure(
    "key_expired",
    "This API key has expired. Ask the operator of this service for another one, or for more time.",
    ofKnownKey,
  );
}

/** The right key, paused. */
function pausedKey(): Failure {
  return new Failure(
    "key_paused",
    "This API key is paused. Ask the operator of this service to resume it.",
    ofKnownKey,
  );
}

/** The right key, for something else than this. */
function keyWithout(scope: KeyScope): Failure {
  const may =
    scope === "generate"
      ? "look at its account and not spend"
      : "spend and not look at its account";
  return new Failure(
    "key_scope",
    `This API key may ${may}: it does not have the scope \`${scope}\`. Use another key, or ask the operator of this service for the scope.`,
    ofKnownKey,
  );
}

/** The right key of a disabled account. */
function disabledAccount(): Failure {
  return new Failure(
    "account_disabled",
    "The account of this API key is disabled. Ask the operator of this service to enable it.",
    ofKnownKey,
  );
}

/** The key's window, with how much of it is used. */
export function rateState(limit: number, held: number, resetMs: number): RateState {
  return { limit, remaining: Math.max(limit - held, 0), resetMs };
}

/** The window is full; `waitMs` until one fits. */
export function rateLimited(rate: RateState, waitMs: number): Failure {
  const seconds = Math.min(Math.max(Math.ceil(waitMs / 1_000), 1), limits.retryAfterSecondsMax);
  return new Failure(
    "rate_limited",
    `This key may send ${String(rate.limit)} requests in any 60 seconds, and has. Wait ${String(seconds)} s, or spread the requests over several keys.`,
    { retryAfterSeconds: seconds, rate, ...ofKnownKey },
  );
}

/** The account's slots are all in use; `freeInMs`: how long at least none of them can be free. */
export function tooManyConcurrent(limit: number, freeInMs: number): Failure {
  const seconds = Math.max(Math.ceil(freeInMs / 1_000), concurrencyRetrySeconds);
  return new Failure(
    "too_many_concurrent",
    `This account runs ${String(limit)} requests already, which is as many as it may at once. Wait until one has ended.`,
    { retryAfterSeconds: Math.min(seconds, limits.retryAfterSecondsMax) },
  );
}

/** The reservation of a request that is asked for again was resolved meanwhile. */
export function endedReservation(): Failure {
  return new Failure(
    "overloaded",
    "The reservation of this request has ended before it could run. Try again.",
    { retryAfterSeconds: 1 },
  );
}

/** The figures of a refusal for credit, at the moment at which it was decided. */
export interface Shortage {
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  readonly neededNanos: CreditNanos;
  readonly affordable: number;
  readonly inputBound: number;
  readonly outputTokensRequested: number | null;
}

/** The balance does not pay for any request, whatever comes in its body. */
export function noCredit(short: {
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  readonly leastNanos: CreditNanos;
  readonly rate: RateState;
}): Failure {
  const shortage = {
    balance: formatCredit(short.balanceNanos),
    held: formatCredit(short.heldNanos),
    needed: formatCredit(short.leastNanos),
    affordableOutputTokens: 0,
    waitingHelps: false,
  };
  return new Failure(
    "insufficient_credit",
    `The balance of this account is ${shortage.balance} credits, and the smallest request needs ${shortage.needed}. Add credit.`,
    { shortage, rate: short.rate, ...ofKnownKey },
  );
}

/** Balance minus held does not pay for the request. */
export function insufficientCredit(short: Shortage): Failure {
  const shortage = shortageOf(short, short.neededNanos <= short.balanceNanos);
  const remedy = shortage.waitingHelps
    ? "Wait until running requests have ended and given back what they hold"
    : "Add credit";
  return new Failure(
    "insufficient_credit",
    `${neededText(short)} The balance is ${shortage.balance}, of which running requests hold ${shortage.held}. ${remedy}${reduceText(short)}`,
    { shortage },
  );
}

/** A key's budget in its present period, as a refusal names it. */
export interface SpentBudget extends BudgetState {
  readonly keyId: string;
  readonly keyName: string;
}

/** The balance may pay for the request; what is left of the key's budget does not. */
export function budgetExceeded(short: Shortage, budget: SpentBudget): Failure {
  const { amountNanos, endMs, heldNanos, keyId, keyName, period, spentNanos } = budget;
  const fits = short.neededNanos <= amountNanos - spentNanos;
  const endsAt = endMs === null ? null : new Date(endMs).toISOString();
  const left = formatCredit(budgetLeft(budget));
  const each = period === "total" ? "in total" : `a ${period}`;
  const until = endsAt === null ? "" : ` until ${endsAt}`;
  const remedy = fits
    ? "Wait until running requests of this key have ended and given back what they hold"
    : `${endsAt === null ? "Ask" : `Wait until ${endsAt}, ask`} the operator of this service for a larger budget`;
  return new Failure(
    "budget_exceeded",
    `${neededText(short)} The budget of the key ${keyId} (${JSON.stringify(keyName)}) is ${formatCredit(amountNanos)} credits ${each}, of which ${left} are left${until}: ${formatCredit(spentNanos)} are spent, and its running requests hold ${formatCredit(heldNanos)}. ${remedy}${reduceText(short)}`,
    {
      shortage: {
        ...shortageOf(short, fits && short.neededNanos <= short.balanceNanos),
        budget: { amount: formatCredit(amountNanos), left, endsAt },
      },
    },
  );
}

function shortageOf(short: Shortage, waitingHelps: boolean): CreditShortage {
  return {
    balance: formatCredit(short.balanceNanos),
    held: formatCredit(short.heldNanos),
    needed: formatCredit(short.neededNanos),
    affordableOutputTokens: short.affordable,
    waitingHelps,
  };
}

function neededText(short: Shortage): string {
  const asked =
    short.outputTokensRequested === null
      ? "at least one output token"
      : "the output allowance it asks for";
  return `This request needs ${formatCredit(short.neededNanos)} credits reserved for its input (counted as at most ${String(short.inputBound)} tokens) and ${asked}.`;
}

function reduceText(short: Shortage): string {
  return short.affordable > 0
    ? `, reduce the output allowance to at most ${String(short.affordable)} tokens, or shorten the conversation.`
    : ", or shorten the conversation.";
}
