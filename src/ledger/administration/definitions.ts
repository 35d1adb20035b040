import type { Account, KeyRecord } from "../records.ts";
import {
  changeAccount,
  createAccount,
  isWithoutAccount,
  listAccounts,
  type NewAccount,
  setAccountStatus,
  showAccount,
} from "./account-administration.ts";
import {
  archivedUntil,
  archiveReceipts,
  findArchive,
  readArchivable,
} from "../archive/archive-receipts.ts";
import { listAudit } from "./audit.ts";
import { checkpoint } from "./checkpoint-administration.ts";
import { countCharges } from "./budget-administration.ts";
import { creditAccount } from "./credit-administration.ts";
import type { Change, ChangeContext, ChangedBy } from "./changed-by.ts";
import {
  changeKey,
  createKey,
  findKeys,
  listKeys,
  type NewKey,
  revokeKey,
  rotateKey,
} from "./key-administration.ts";
import {
  cancelGeneration,
  cancelledGenerations,
  openRequests,
} from "./generation-administration.ts";
import { isGrantDue, payGrants } from "./grant-administration.ts";
import { findKey, pageAccounts, pageEntries, pageReceipts } from "./lists.ts";
import { eventChanges, eventLooks } from "./event-definitions.ts";
import { runOnce } from "./once.ts";
import { readStatement } from "./statement.ts";
import {
  createOperator,
  findOperator,
  listOperators,
  revokeOperator,
} from "./operator-administration.ts";
import {
  drainReplica,
  forgetReplica,
  listReplicas,
  reportReplica,
} from "./replica-administration.ts";
import {
  createFirstOperator,
  createLoginCode,
  endSession,
  findSession,
  openSession,
} from "./session-administration.ts";
import {
  changePriceList,
  createPriceList,
  pagePriceLists,
  showPriceList,
} from "./price-administration.ts";
import { addSealKey, sealKeys } from "./seal-key-administration.ts";
import type { Steps } from "./steps.ts";
import { findUnsummed, keepUsage } from "../usage/keep-usage.ts";
import { pageUsage, printUsage } from "../usage/sum-usage.ts";

/** Operations that only read: one snapshot each. */
const looks = {
  archivedUntil,
  findArchive,
  readArchivable,
  cancelledGenerations,
  countCharges,
  ...eventLooks,
  findKey,
  isGrantDue,
  findKeys,
  findOperator,
  findSession,
  listAccounts,
  listAudit,
  listKeys,
  listOperators,
  listReplicas,
  openRequests,
  pageAccounts,
  pageEntries,
  pagePriceLists,
  pageReceipts,
  readStatement,
  findUnsummed,
  showAccount,
  showPriceList,
  pageUsage,
  printUsage,
};

/** Operations that write: one transaction each. */
const changes = {
  ...eventChanges,
  addSealKey,
  archiveReceipts,
  cancelGeneration,
  changeAccount,
  changeKey,
  changePriceList,
  checkpoint,
  createAccount,
  createFirstAccount,
  createFirstOperator,
  createKey,
  createLoginCode,
  createOperator,
  createPriceList,
  creditAccount,
  drainReplica,
  endSession,
  forgetReplica,
  keepUsage,
  openSession,
  payGrants,
  reportReplica,
  revokeKey,
  revokeOperator,
  rotateKey,
  sealKeys,
  setAccountStatus,
};

type Looks = typeof looks;
type Changes = typeof changes;

/** The operators' operations of a store, each with its argument and the time in milliseconds since 1970. */
export type AdministrationOperations = {
  readonly [Name in keyof Looks]: (
    argument: ArgumentOfSteps<Looks[Name]>,
    nowMs: number,
  ) => ValueOfSteps<Looks[Name]>;
} & {
  readonly [Name in keyof Changes]: (
    argument: Change<ArgumentOfSteps<Changes[Name]>>,
    nowMs: number,
  ) => ValueOfSteps<Changes[Name]>;
};

// An operation without an argument is asked for with null.
type ArgumentOfSteps<Begin extends (...values: never[]) => unknown> =
  Parameters<Begin> extends [] ? null : Parameters<Begin>[0];

type ValueOfSteps<Begin extends (...values: never[]) => unknown> =
  ReturnType<Begin> extends Steps<infer Value> ? Value : never;

/** The names of the operations that only read. */
export const lookNames: readonly (keyof Looks)[] = Object.keys(looks) as (keyof Looks)[];

/** Every operation that reads, begun by its argument at a time. */
export const begunLooks: readonly Begun[] = Object.entries(looks).map(([name, begin]) => ({
  name,
  begin: (argument, nowMs) => begin(argument as never, { nowMs }),
}));

/** Every operation that writes: under its key once, where it has one. */
export const begunChanges: readonly Begun[] = Object.entries(changes).map(([name, begin]) => ({
  name,
  begin(argument, nowMs) {
    const { actor, ifVersion = null, once } = (argument as Change<object>).by ?? byService;
    const context = { nowMs, actor, ifVersion };
    const start = (): Steps<unknown> => begin(argument as never, context);
    return once === null ? start() : runOnce(once, context, start);
  },
}));

/** An operation, ready to be run by a store. */
export interface Begun {
  readonly name: string;
  readonly begin: (argument: unknown, nowMs: number) => Steps<unknown>;
}

const byService: ChangedBy = { actor: "service", once: null };

/** null when there is an account already. Of two processes at once one makes it. */
function* createFirstAccount(
  order: { readonly account: NewAccount; readonly key: NewKey },
  context: ChangeContext,
): Steps<{ readonly account: Account; readonly key: KeyRecord } | null> {
  if (!(yield* isWithoutAccount())) return null;
  yield { type: "lock", name: "first" };
  if (!(yield* isWithoutAccount())) return null;
  const account = yield* createAccount(order.account, context);
  return { account, key: yield* createKey(order.key, context) };
}
