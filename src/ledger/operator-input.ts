import type { AccountLimits } from "../admission/limits-in-force.ts";
import { formatCredit } from "../admission/price.ts";
import { limits } from "../limits.ts";
import type { Account } from "./records.ts";
import { OperatorError } from "./operator-error.ts";

/** Throws unless the account can take this amount: its balance stays within the limit and never below what is held. */
export function ensurePossible(account: Account, amountNanos: bigint): void {
  if (amountNanos === 0n)
    throw new OperatorError("invalid_value", "An amount of 0 changes nothing. Give another one.", {
      param: "amount",
    });
  const after = account.balanceNanos + amountNanos;
  if (after > limits.creditNanosMax) throw tooMuch("amount");
  if (after < account.heldNanos)
    throw new OperatorError(
      "not_possible",
      `At most ${formatCredit(account.balanceNanos - account.heldNanos)} can be taken back from ${account.id}: its balance is ${formatCredit(account.balanceNanos)}, of which running requests hold ${formatCredit(account.heldNanos)}.`,
      { param: "amount" },
    );
}

/** Throws unless the ledger can add up this amount, which is in the field `param`. */
export function ensureAmount(amountNanos: bigint, param = "amount"): void {
  if (amountNanos > limits.creditNanosMax || amountNanos < -limits.creditNanosMax)
    throw tooMuch(param);
}

function tooMuch(param: string): OperatorError {
  return new OperatorError(
    "invalid_value",
    `An account holds at most ${formatCredit(limits.creditNanosMax)} credits. Give a smaller amount.`,
    { param },
  );
}

/** Throws unless a note fits a line. */
export function ensureNote(note: string | null): void {
  if (note !== null && note.length > limits.noteCharactersMax)
    throw new OperatorError(
      "invalid_value",
      `A note has at most ${String(limits.noteCharactersMax)} characters.`,
      { param: "note" },
    );
}

/** Throws unless the name that another system has for something fits a line. */
export function ensureLine(param: "reference" | "external_id", text: string | null): void {
  if (text === null) return;
  const most = limits.referenceCharactersMax;
  if (text === "" || text.length > most || /\p{Cc}/u.test(text))
    throw new OperatorError(
      "invalid_value",
      `${param} has 1 to ${String(most)} characters, none of them control characters.`,
      { param },
    );
}

/** Throws unless a table can print the name: not empty, not too long, no control characters. */
export function ensureName(noun: "account" | "key" | "operator", name: string): void {
  if (name.trim() === "" || name.length > limits.nameCharactersMax || /\p{Cc}/u.test(name))
    throw new OperatorError(
      "invalid_value",
      `The name of an ${noun === "key" ? "API key" : noun} has 1 to ${String(limits.nameCharactersMax)} characters, none of them control characters.`,
      { param: "name" },
    );
}

/** Throws unless limits are none, or whole numbers that an account or a key can have. */
export function ensureLimits(given: Partial<AccountLimits>): void {
  ensureLimit("concurrent_requests", given.concurrentRequests, limits.concurrencyMax);
  ensureLimit("requests_per_minute", given.requestsPerMinute, limits.requestsPerMinuteMax);
  ensureLimit("output_tokens_max", given.outputTokensMax, limits.outputAllowanceMax);
}

function ensureLimit(name: string, limit: number | null | undefined, most: number): void {
  if (limit === undefined || limit === null) return;
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= most) return;
  throw new OperatorError(
    "invalid_value",
    `${name} is a whole number from 1 to ${String(most)}, or null for none of its own.`,
    { param: `limits.${name}` },
  );
}

/** The error for an id that names no account; `param` is what has the id. */
export function unknownAccount(id: string, param = "id"): OperatorError {
  return new OperatorError(
    "not_found",
    `There is no account ${id}. \`tributary account list\` shows the accounts of this ledger.`,
    { param },
  );
}

/** The error for an id that names no key. */
export function unknownKeyId(id: string): OperatorError {
  return new OperatorError(
    "not_found",
    `There is no key ${id}. \`tributary key list ACCOUNT\` shows the keys of an account.`,
    { param: "id" },
  );
}

/** Throws unless an account could have this balance. */
export function ensureLowBalance(nanos: bigint | null): void {
  if (nanos === null) return;
  if (nanos < 0n)
    throw new OperatorError("invalid_value", "A balance that is called low is 0 or more.", {
      param: "low_balance_at",
    });
  ensureAmount(nanos, "low_balance_at");
}
