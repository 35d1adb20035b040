import { OperatorError } from "../operator-error.ts";
import { ensureName, unknownAccount } from "../operator-input.ts";
import { keyColumns, type KeyId, keyOf, type KeyRecord } from "../records.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** A key to make. */
export interface NewKey {
  readonly id: KeyId;
  readonly accountId: string;
  readonly name: string;
  readonly secretHash: Uint8Array;
}

/** Makes a key of an account. */
export function* createKey(order: NewKey, context: ChangeContext): Steps<KeyRecord> {
  yield* ensureAccount(order.accountId);
  ensureName("key", order.name);
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
  const after = { account: order.accountId, name: order.name };
  yield* audit(context, { action: "key.create", target: order.id, before: null, after });
  return keyOf(row, context.nowMs);
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

/** Revokes a key; a second time leaves the time of the first. */
export function* revokeKey(
  { id }: { readonly id: string },
  context: ChangeContext,
): Steps<KeyRecord> {
  const row = yield* askOne(
    `select ${keyColumns} from tributary.api_key where id = $1 for no key update`,
    id,
  );
  if (row === null)
    throw new OperatorError(
      "not_found",
      `There is no key ${id}. \`tributary key list ACCOUNT\` shows the keys of an account.`,
    );
  const before = keyOf(row, context.nowMs);
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

function* ensureAccount(id: string): Steps<void> {
  const row = yield* askOne("select 1 as one from tributary.account where id = $1", id);
  if (row === null) throw unknownAccount(id);
}
