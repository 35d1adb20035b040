import type { AccountLimits } from "../../admission/limits-in-force.ts";
import { formatCredit } from "../../admission/price.ts";
import { OperatorError } from "../operator-error.ts";
import { ensureAmount, ensureLimits, ensureName, unknownAccount } from "../operator-input.ts";
import {
  type Account,
  accountColumns,
  type AccountId,
  accountOf,
  type CreditNanos,
} from "../records.ts";
import { audit, type AuditFacts, changedFacts } from "./audit.ts";
import { type ChangeContext, type Patch, present } from "./changed-by.ts";
import { ensurePriceList } from "./price-administration.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** An account to make. Ids and secrets come from outside, so that the store is a function of what it is given. */
export interface NewAccount {
  readonly id: AccountId;
  readonly name: string;
  readonly creditNanos: CreditNanos;
}

const find = `select ${accountColumns} from tributary.account where id = $1`;

/** Makes an account with its starting credit. */
export function* createAccount(order: NewAccount, context: ChangeContext): Steps<Account> {
  const { creditNanos, id, name } = order;
  ensureName("account", name);
  ensureAmount(creditNanos);
  if (creditNanos < 0n)
    throw new OperatorError("invalid_value", "An account starts with a credit of 0 or more.");
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
  const after = { name, credit: formatCredit(creditNanos) };
  yield* audit(context, { action: "account.create", target: id, before: null, after });
  return yield* showAccount(id);
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
}

/** Changes an account; one that is so already is left alone. */
export function* changeAccount(
  order: AccountPatch & { readonly id: string },
  context: ChangeContext,
): Steps<Account> {
  const row = yield* askOne(`${find} for no key update`, order.id);
  if (row === null) throw unknownAccount(order.id);
  const before = accountOf(row);
  const after = {
    ...before,
    name: order.name ?? before.name,
    status: order.status ?? before.status,
    limits: { ...before.limits, ...present(order.limits) },
    priceList: order.priceList === undefined ? before.priceList : order.priceList,
    version: before.version + 1,
  };
  ensureName("account", after.name);
  ensureLimits(after.limits);
  if (after.priceList !== null && after.priceList !== before.priceList)
    yield* ensurePriceList(after.priceList);
  const changed = changedFacts(factsOf(before), factsOf(after));
  if (changed === null) return before;
  yield* ask(
    `update tributary.account set name = $2, status = $3, concurrent_requests = $4, requests_per_minute = $5,
       output_tokens_max = $6, price_list = $7, version = version + 1 where id = $1`,
    before.id,
    after.name,
    after.status,
    after.limits.concurrentRequests,
    after.limits.requestsPerMinute,
    after.limits.outputTokensMax,
    after.priceList,
  );
  yield* audit(context, { action: actionOf(before, after), target: before.id, ...changed });
  return after;
}

function factsOf({ limits, name, priceList, status }: Account): AuditFacts {
  return {
    name,
    status,
    concurrent_requests: limits.concurrentRequests,
    requests_per_minute: limits.requestsPerMinute,
    output_tokens_max: limits.outputTokensMax,
    price_list: priceList,
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
