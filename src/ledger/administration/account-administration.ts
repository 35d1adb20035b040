import type { AccountLimits } from "../../admission/limits-in-force.ts";
import { formatCredit } from "../../admission/price.ts";
import type { Grant, GrantState } from "../grant.ts";
import { OperatorError } from "../operator-error.ts";
import {
  ensureAmount,
  ensureLimits,
  ensureLine,
  ensureLowBalance,
  ensureName,
  unknownAccount,
} from "../operator-input.ts";
import { type MetadataPatch, mergeMetadata } from "../metadata.ts";
import { textOf } from "../row.ts";
import { type Account, accountColumns, accountOf } from "../records.ts";
import type { AccountId, CreditNanos } from "../scalars.ts";
import { audit, type AuditFacts, changedFacts } from "./audit.ts";
import { grantFacts, patchedGrant, setGrant } from "./grant-administration.ts";
import { ensurePriceList } from "./price-administration.ts";
import { type ChangeContext, ensureVersion, type Patch, present } from "./changed-by.ts";
import { ask, askOne, type StatementValue, type Steps } from "./steps.ts";

/** An account to make. Ids and secrets come from outside, so that the store is a function of what it is given. */
export interface NewAccount {
  readonly id: AccountId;
  readonly name: string;
  readonly creditNanos: CreditNanos;
  /** What else to set; absent: nothing. */
  readonly patch?: AccountPatch;
}

const find = `select ${accountColumns} from tributary.account where id = $1`;

/** Makes an account with its starting credit. */
export function* createAccount(order: NewAccount, context: ChangeContext): Steps<Account> {
  const { creditNanos, id, name } = order;
  ensureName("account", name);
  ensureAmount(creditNanos, "credit");
  if (creditNanos < 0n)
    throw new OperatorError("invalid_value", "An account starts with a credit of 0 or more.", {
      param: "credit",
    });
  yield* ask(
    `insert into tributary.account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
     values ($1, $2, 'active', 0, 0, 0, 0, $3)`,
    id,
    name,
    context.nowMs,
  );
  if (creditNanos > 0n) {
    const starting = { accountId: id, amountNanos: creditNanos, note: "starting credit" };
    const { actor } = context;
    yield { type: "move", movement: { ...starting, actor, kind: "credit", known: null } };
  }
  const made = yield* showAccount(id);
  const written = yield* write(made, order.patch ?? {}, made.version);
  const after = { name, credit: formatCredit(creditNanos), ...written?.changed.after };
  yield* audit(context, { action: "account.create", target: id, before: null, after });
  return written === null ? made : yield* grantTo(made, written.after, context);
}

/** All accounts, oldest first. */
export function* listAccounts(): Steps<readonly Account[]> {
  const rows = yield* ask(
    `select ${accountColumns} from tributary.account order by created_at_ms, id`,
  );
  return rows.map(accountOf);
}

/** Throws an OperatorError where there is no such account. */
export function* showAccount(id: string): Steps<Account> {
  const row = yield* askOne(find, id);
  if (row === null) throw unknownAccount(id);
  return accountOf(row);
}

/** Disables an account or enables it again. */
export function* setAccountStatus(
  { id, status }: { readonly id: string; readonly status: Account["status"] },
  context: ChangeContext,
): Steps<Account> {
  return yield* changeAccount({ id, status }, context);
}

/** What of an account to change; what is absent stays. */
export interface AccountPatch {
  readonly name?: string | undefined;
  readonly status?: Account["status"] | undefined;
  readonly limits?: Patch<AccountLimits> | undefined;
  /** null: `default`. */
  readonly priceList?: string | null | undefined;
  /** null: no event says that the balance is low. */
  readonly lowBalanceNanos?: CreditNanos | null | undefined;
  readonly externalId?: string | null | undefined;
  readonly metadata?: MetadataPatch | undefined;
  /** null: none any more; what is absent of a grant stays. */
  readonly grant?: Patch<Grant> | null | undefined;
}

/** Changes an account; one that is so already is left alone. */
export function* changeAccount(
  order: AccountPatch & { readonly id: string },
  context: ChangeContext,
): Steps<Account> {
  const row = yield* askOne(`${find} for no key update`, order.id);
  if (row === null) throw unknownAccount(order.id);
  const before = accountOf(row);
  ensureVersion(before.version, context);
  const written = yield* write(before, order, before.version + 1);
  if (written === null) return before;
  const { after, changed } = written;
  yield* audit(context, { action: actionOf(before, after), target: before.id, ...changed });
  return yield* grantTo(before, after, context);
}

/** The account after a change, whose first grant is paid at once. */
function* grantTo(before: Account, after: Account, { nowMs }: ChangeContext): Steps<Account> {
  if (after.grant === before.grant) return after;
  yield* setGrant(before, after.grant, nowMs);
  return yield* showAccount(after.id);
}

/** Writes what a patch changes, and answers it; null: nothing. */
function* write(
  before: Account,
  patch: AccountPatch,
  version: number,
): Steps<{
  readonly after: Account;
  readonly changed: NonNullable<ReturnType<typeof changedFacts>>;
} | null> {
  const after = {
    ...before,
    name: patch.name ?? before.name,
    status: patch.status ?? before.status,
    limits: { ...before.limits, ...present(patch.limits) },
    priceList: patch.priceList === undefined ? before.priceList : patch.priceList,
    lowBalanceNanos:
      patch.lowBalanceNanos === undefined ? before.lowBalanceNanos : patch.lowBalanceNanos,
    externalId: patch.externalId === undefined ? before.externalId : patch.externalId,
    metadata: mergeMetadata(before.metadata, patch.metadata),
    grant: patchedGrantOf(before, patch.grant),
    version,
  };
  ensureName("account", after.name);
  ensureLimits(after.limits);
  if (after.priceList !== null && after.priceList !== before.priceList)
    yield* ensurePriceList(after.priceList);
  ensureLowBalance(after.lowBalanceNanos);
  const changed = changedFacts(factsOf(before), factsOf(after));
  if (changed === null) return null;
  if (after.externalId !== before.externalId) yield* ensureExternalId(after);
  const columns = Object.entries(columnsOf(after));
  const set = columns.map(([column], at) => `${column} = $${String(at + 2)}`).join(", ");
  const values = columns.map(([, value]) => value);
  yield* ask(`update tributary.account set ${set} where id = $1`, before.id, ...values);
  if (after.lowBalanceNanos !== before.lowBalanceNanos)
    yield* callLow(before, after.lowBalanceNanos);
  return { after, changed };
}

/** A balance that is below already has not fallen. */
function* callLow({ balanceNanos, id }: Account, lowNanos: CreditNanos | null): Steps<unknown> {
  return yield* ask(
    "update tributary.account set low_balance_nanos = $2, balance_low = $3 where id = $1",
    id,
    lowNanos,
    lowNanos !== null && balanceNanos < lowNanos ? 1 : 0,
  );
}

/** Throws where another account has the external id; of two changes at once the second finds that of the first. */
function* ensureExternalId({ externalId, id }: Account): Steps<void> {
  if (externalId === null) return;
  ensureLine("external_id", externalId);
  yield { type: "lock", name: "external-id" };
  const other = yield* askOne(
    "select id from tributary.account where external_id = $1 and id <> $2",
    externalId,
    id,
  );
  if (other === null) return;
  throw new OperatorError(
    "not_possible",
    `${textOf(other, "id")} has the external id ${JSON.stringify(externalId)} already. Give another one, or take it from that account first.`,
    { param: "external_id" },
  );
}

/** What operators set, as the account's row has it. */
function columnsOf(account: Account): Readonly<Record<string, StatementValue>> {
  return {
    name: account.name,
    status: account.status,
    concurrent_requests: account.limits.concurrentRequests,
    requests_per_minute: account.limits.requestsPerMinute,
    output_tokens_max: account.limits.outputTokensMax,
    price_list: account.priceList,
    external_id: account.externalId,
    metadata_json: JSON.stringify(account.metadata),
    version: account.version,
  };
}

function patchedGrantOf(
  before: Account,
  patch: Patch<Grant> | null | undefined,
): GrantState | null {
  if (patch === undefined) return before.grant;
  return patch === null
    ? null
    : { nextMs: 0, ...before.grant, ...patchedGrant(before.grant, patch) };
}

function factsOf(account: Account): AuditFacts {
  const { externalId, grant, limits, lowBalanceNanos, metadata, name, priceList, status } = account;
  return {
    name,
    status,
    external_id: externalId,
    metadata: JSON.stringify(metadata),
    concurrent_requests: limits.concurrentRequests,
    requests_per_minute: limits.requestsPerMinute,
    output_tokens_max: limits.outputTokensMax,
    price_list: priceList,
    low_balance_at: lowBalanceNanos === null ? null : formatCredit(lowBalanceNanos),
    ...grantFacts(grant),
  };
}

function actionOf(before: Account, after: Account): string {
  if (before.status === after.status) return "account.change";
  return after.status === "active" ? "account.enable" : "account.disable";
}

/** Whether the ledger has no account at all. */
export function* isWithoutAccount(): Steps<boolean> {
  return (yield* askOne("select 1 as one from tributary.account limit 1")) === null;
}
