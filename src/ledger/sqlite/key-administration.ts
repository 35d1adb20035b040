import type { DatabaseSync } from "node:sqlite";
import { keyOf, type KeyRecord } from "../records.ts";
import { OperatorError } from "../operator-error.ts";
import { ensureName, unknownAccount } from "../operator-input.ts";
import type { StoreOperations } from "../store-operations.ts";
import { getRow } from "./get-row.ts";

/** The half of the administration that is about keys. */
export type KeyAdministration = Pick<StoreOperations, "createKey" | "listKeys" | "revokeKey">;

const keyColumns = "id, account_id, name, created_at_ms, revoked_at_ms";

/** Prepares the statements once. */
export function openKeyAdministration(database: DatabaseSync): KeyAdministration {
  const findAccount = database.prepare("select 1 as one from account where id = ?");
  const find = database.prepare(`select ${keyColumns} from api_key where id = ?`);
  const list = database.prepare(
    `select ${keyColumns} from api_key where account_id = ? order by created_at_ms, id`,
  );
  const insert = database.prepare(
    "insert into api_key (id, account_id, name, secret_hash, created_at_ms) values (?, ?, ?, ?, ?)",
  );
  // A second revocation leaves the time of the first.
  const revoke = database.prepare(
    "update api_key set revoked_at_ms = ? where id = ? and revoked_at_ms is null",
  );

  const show = (id: string): KeyRecord => {
    const row = getRow(find, id);
    if (row === null)
      throw new OperatorError(
        "not_found",
        `There is no key ${id}. \`tributary key list ACCOUNT\` shows the keys of an account.`,
      );
    return keyOf(row);
  };
  const ensureAccount = (id: string): void => {
    if (getRow(findAccount, id) === null) throw unknownAccount(id);
  };
  return {
    createKey(order, nowMs) {
      ensureAccount(order.accountId);
      ensureName("key", order.name);
      insert.run(order.id, order.accountId, order.name, order.secretHash, nowMs);
      return show(order.id);
    },
    listKeys(accountId) {
      ensureAccount(accountId);
      return list.all(accountId).map(keyOf);
    },
    revokeKey(id, nowMs) {
      revoke.run(nowMs, id);
      return show(id);
    },
  };
}
