import type { KeyLimits } from "../../admission/limits-in-force.ts";
import type { Budget, BudgetState } from "../budget.ts";
import { OperatorError } from "../operator-error.ts";
import { ensureLimits, ensureName, unknownAccount, unknownKeyId } from "../operator-input.ts";
import { keyColumns, keyOf, type KeyRecord, type KeyScope, keyScopes } from "../records.ts";
import type { KeyId } from "../scalars.ts";
import { limits } from "../../limits.ts";
import {
  budgetFacts,
  type CountedCharges,
  nothingCharged,
  patchedBudget,
  setBudget,
} from "./budget-administration.ts";
import { audit, type AuditFacts, changedFacts } from "./audit.ts";
import { type ChangeContext, ensureVersion, type Patch, present } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** When a key may be used, for what and how much; what is absent is as a new key has it, or stays. */
export interface KeyPolicy {
  readonly scopes?: readonly KeyScope[] | undefined;
  /** Null: it does not expire. */
  readonly expiresAtMs?: number | null | undefined;
  readonly limits?: Patch<KeyLimits> | undefined;
  /** Null: none; what is absent of a budget stays. */
  readonly budget?: Patch<Budget> | null | undefined;
}

/** What of a key to change; what is absent stays. */
export interface KeyPatch extends KeyPolicy {
  readonly name?: string | undefined;
  readonly status?: KeyRecord["status"] | undefined;
}

/** A change of a key, with what was counted for its budget before; without, all is counted while requests wait. */
export interface CountedPatch extends KeyPatch {
  readonly counted?: CountedCharges | null;
}

/** A key to make. */
export interface NewKey extends KeyPolicy {
  readonly id: KeyId;
  readonly accountId: string;
  readonly name: string;
  readonly secretHash: Uint8Array;
}

/** Makes a key of an account. */
export function* createKey(order: NewKey, context: ChangeContext): Steps<KeyRecord> {
  yield* ensureAccount(order.accountId);
  if (typeof order.expiresAtMs === "number" && order.expiresAtMs <= context.nowMs)
    throw new OperatorError("invalid_value", "expires_at is over. Name a time to come, or none.", {
      param: "expires_at",
    });
  const row = yield* askOne(
    `insert into tributary.api_key (id, account_id, name, secret_hash, created_at_ms) values ($1, $2, $3, $4, $5)
     returning ${keyColumns}`,
    order.id,
    order.accountId,
    order.name,
    order.secretHash,
    context.nowMs,
  );
  if (row === null) throw new Error("ledger: the key was not written");
  const plain = keyOf(row, context.nowMs);
  const made = { ...patched(plain, order), version: plain.version };
  yield* write(made);
  const budget = yield* writeBudget(made, { ...order, counted: nothingCharged }, context);
  const policy = changedFacts(factsOf(plain), factsOf(made))?.after;
  const after = { account: order.accountId, name: order.name, ...policy };
  yield* audit(context, { action: "key.create", target: order.id, before: null, after });
  return { ...made, budget };
}

/** Changes a key; one that is so already is left alone. */
export function* changeKey(
  order: CountedPatch & { readonly id: string },
  context: ChangeContext,
): Steps<KeyRecord> {
  const before = yield* lockKey(order.id, context);
  ensureVersion(before.version, context);
  if (before.revokedAtMs !== null) throw revoked(before);
  const after = patched(before, order);
  const changed = changedFacts(factsOf(before), factsOf(after));
  if (changed === null) return before;
  yield* write(after);
  const budget = yield* writeBudget(after, order, context);
  yield* audit(context, { action: actionOf(before, after), target: before.id, ...changed });
  return { ...after, budget };
}

/** A new secret of a key. The one before it is good for a while, and any older one from now on no more. */
export function* rotateKey(
  order: {
    readonly id: string;
    readonly secretHash: Uint8Array;
    readonly overlapMs: number;
    /** Comes back, so that a repeated change is known by the id of its first time. */
    readonly rotationId: string;
  },
  context: ChangeContext,
): Steps<{ readonly record: KeyRecord; readonly rotationId: string }> {
  const { overlapMs, rotationId, secretHash } = order;
  const before = yield* lockKey(order.id, context);
  if (before.revokedAtMs !== null) throw revoked(before);
  const most = limits.rotationOverlapSecondsMax;
  if (!Number.isSafeInteger(overlapMs) || overlapMs < 0 || overlapMs > most * 1_000)
    throw new OperatorError("invalid_value", `overlap_seconds is 0 to ${String(most)}.`, {
      param: "overlap_seconds",
    });
  const previousUntilMs = context.nowMs + overlapMs;
  yield* ask(
    `update tributary.api_key set previous_hash = secret_hash, previous_until_ms = $2, secret_hash = $3,
       version = version + 1 where id = $1`,
    before.id,
    previousUntilMs,
    secretHash,
  );
  yield* audit(context, {
    action: "key.rotate",
    target: before.id,
    before: { previous_secret_until: isoTime(before.previousUntilMs) },
    after: { previous_secret_until: isoTime(previousUntilMs) },
  });
  return { record: { ...before, previousUntilMs, version: before.version + 1 }, rotationId };
}

/** The keys of an account, oldest first. */
export function* listKeys(
  accountId: string,
  { nowMs }: { readonly nowMs: number },
): Steps<readonly KeyRecord[]> {
  yield* ensureAccount(accountId);
  const rows = yield* ask(
    `select ${keyColumns} from tributary.api_key where account_id = $1 order by created_at_ms, id`,
    accountId,
  );
  return rows.map((row) => keyOf(row, nowMs));
}

/** Keys whose secrets begin so: `trib_ACCOUNT_` and the whole id of one, or how it begins. */
export function* findKeys(
  prefix: string,
  { nowMs }: { readonly nowMs: number },
): Steps<readonly KeyRecord[]> {
  const [, account = "", key = "", secret] = prefix.split("_");
  const rows = yield* ask(
    `select ${keyColumns} from tributary.api_key where account_id = $1 and id >= $2 and id <= $3 order by id
     limit ${String(limits.pageRowsMax)}`,
    `acct_${account}`,
    `key_${key}`,
    // Ids are letters and digits, all of them before this.
    secret === undefined ? `key_${key}~` : `key_${key}`,
  );
  return rows.map((row) => keyOf(row, nowMs));
}

/** Revokes a key; a second time leaves the time of the first. */
export function* revokeKey(
  { id }: { readonly id: string },
  context: ChangeContext,
): Steps<KeyRecord> {
  const before = yield* lockKey(id, context);
  if (before.revokedAtMs !== null) return before;
  yield* ask(
    "update tributary.api_key set revoked_at_ms = $2, version = version + 1 where id = $1",
    id,
    context.nowMs,
  );
  yield* audit(context, {
    action: "key.revoke",
    target: before.id,
    before: { revoked: false },
    after: { revoked: true },
  });
  return { ...before, revokedAtMs: context.nowMs, version: before.version + 1 };
}

/** The key, behind the lock of its account: nothing else changes what operators set of it. */
function* lockKey(id: string, { nowMs }: ChangeContext): Steps<KeyRecord> {
  yield* ask(
    `select 1 as one from tributary.account
     where id = (select account_id from tributary.api_key where id = $1) for no key update`,
    id,
  );
  const row = yield* askOne(`select ${keyColumns} from tributary.api_key where id = $1`, id);
  if (row === null) throw unknownKeyId(id);
  return keyOf(row, nowMs);
}

function patched(before: KeyRecord, patch: KeyPatch): KeyRecord {
  const { expiresAtMs, name, scopes, status } = present(patch);
  const after: KeyRecord = {
    ...before,
    name: name ?? before.name,
    status: status ?? before.status,
    scopes: keyScopes.filter((scope) => (scopes ?? before.scopes).includes(scope)),
    expiresAtMs: expiresAtMs === undefined ? before.expiresAtMs : expiresAtMs,
    limits: { ...before.limits, ...present(patch.limits) },
    budget: patch.budget === undefined ? before.budget : unspent(before, patch.budget),
    version: before.version + 1,
  };
  ensureName("key", after.name);
  ensureLimits(after.limits);
  if (after.scopes.length === 0)
    throw new OperatorError("invalid_value", "scopes has `generate`, `read` or both.", {
      param: "scopes",
    });
  return after;
}

/** The budget that a patch leaves; `writeBudget` counts what is spent of it. */
function unspent(before: KeyRecord, patch: Patch<Budget> | null): BudgetState | null {
  const budget = patchedBudget(before.budget, patch);
  const empty = { beginMs: 0, endMs: null, spentNanos: 0n, heldNanos: 0n };
  return budget === null ? null : { ...empty, ...budget };
}

function* writeBudget(
  after: KeyRecord,
  { budget, counted = null }: CountedPatch,
  { nowMs }: ChangeContext,
): Steps<BudgetState | null> {
  if (budget === undefined) return after.budget;
  return yield* setBudget(after, after.budget, { counted, nowMs });
}

function* write(after: KeyRecord): Steps<void> {
  yield* ask(
    `update tributary.api_key set name = $2, status = $3, scopes = $4, expires_at_ms = $5, requests_per_minute = $6,
       output_tokens_max = $7, version = $8 where id = $1`,
    after.id,
    after.name,
    after.status,
    after.scopes.join(" "),
    after.expiresAtMs,
    after.limits.requestsPerMinute,
    after.limits.outputTokensMax,
    after.version,
  );
}

function factsOf(key: KeyRecord): AuditFacts {
  return {
    name: key.name,
    status: key.status,
    scopes: key.scopes.join(" "),
    expires_at: isoTime(key.expiresAtMs),
    requests_per_minute: key.limits.requestsPerMinute,
    output_tokens_max: key.limits.outputTokensMax,
    ...budgetFacts(key.budget),
  };
}

function actionOf(before: KeyRecord, after: KeyRecord): string {
  if (before.status === after.status) return "key.change";
  return after.status === "active" ? "key.resume" : "key.pause";
}

function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function revoked({ id }: KeyRecord): OperatorError {
  return new OperatorError(
    "not_possible",
    `The key ${id} has been revoked, which is for good. Make another key for its account.`,
    { param: "id" },
  );
}

function* ensureAccount(id: string): Steps<void> {
  const row = yield* askOne("select 1 as one from tributary.account where id = $1", id);
  if (row === null) throw unknownAccount(id);
}
