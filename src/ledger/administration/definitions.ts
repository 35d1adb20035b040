import type { Account, KeyRecord } from "../records.ts";
import {
  createAccount,
  creditAccount,
  isWithoutAccount,
  listAccounts,
  type NewAccount,
  setAccountStatus,
  showAccount,
} from "./account-administration.ts";
import { createKey, listKeys, type NewKey, revokeKey } from "./key-administration.ts";
import { addSealKey, sealKeys } from "./seal-key-administration.ts";
import type { Steps } from "./steps.ts";

/** Operations that only read: one snapshot each. */
export const looks = { listAccounts, listKeys, showAccount };

/** Operations that write: one transaction each. */
export const changes = {
  addSealKey,
  createAccount,
  createFirstAccount,
  createKey,
  creditAccount,
  revokeKey,
  sealKeys,
  setAccountStatus,
};

type Definitions = typeof looks & typeof changes;

/** The operators' operations of a store, each with its argument and the time in milliseconds since 1970. */
export type AdministrationOperations = {
  readonly [Name in keyof Definitions]: (
    argument: ArgumentOfSteps<Definitions[Name]>,
    nowMs: number,
  ) => ValueOfSteps<Definitions[Name]>;
};

// An operation without an argument is asked for with null.
type ArgumentOfSteps<Begin extends (...values: never[]) => unknown> =
  Parameters<Begin> extends [] ? null : Parameters<Begin>[0];

type ValueOfSteps<Begin extends (...values: never[]) => unknown> =
  ReturnType<Begin> extends Steps<infer Value> ? Value : never;

/** null when there is an account already. Of two processes at once one makes it. */
function* createFirstAccount(
  order: { readonly account: NewAccount; readonly key: NewKey },
  nowMs: number,
): Steps<{ readonly account: Account; readonly key: KeyRecord } | null> {
  if (!(yield* isWithoutAccount())) return null;
  yield { type: "lock", name: "first" };
  if (!(yield* isWithoutAccount())) return null;
  const account = yield* createAccount(order.account, nowMs);
  return { account, key: yield* createKey(order.key, nowMs) };
}
