import { keyOf, type KeyRecord } from "../records.ts";
import { OperatorError } from "../operator-error.ts";
import type { NewKey, PostgresOperations } from "../store-operations.ts";
import { ensureName, unknownAccount } from "../operator-input.ts";
import type { Clock, Database, Query } from "./database.ts";

const keyColumns = "id, account_id, name, created_at_ms, revoked_at_ms";
const findAccount = {
  name: "key-account",
  text: "select 1 as one from tributary.account where id = $1",
};
const list = {
  name: "keys",
  text: `select ${keyColumns} from tributary.api_key where account_id = $1 order by created_at_ms, id`,
};
const insert = {
  name: "create-key",
  text: `insert into tributary.api_key (id, account_id, name, secret_hash, created_at_ms)
    values ($1, $2, $3, $4, coalesce($5, tributary.now_ms())) returning ${keyColumns}`,
};
// A second revocation leaves the time of the first.
const revoke = {
  name: "revoke",
  text: `update tributary.api_key set revoked_at_ms = coalesce(revoked_at_ms, $2, tributary.now_ms())
    where id = $1 returning ${keyColumns}`,
};

/** The half of the administration that is about keys. */
export function openKeyAdministration(
  database: Database,
  clock: Clock,
): Pick<PostgresOperations, "createKey" | "listKeys" | "revokeKey"> {
  return {
    createKey: (order) => database.transaction((query) => createKey(query, order, clock)),
    async listKeys(accountId) {
      await ensureAccount(database.query, accountId);
      return (await database.query(list, accountId)).map(keyOf);
    },
    revokeKey: (id) =>
      database.transaction(async (query) => {
        const [row] = await query(revoke, id, clock());
        if (row === undefined)
          throw new OperatorError(
            "not_found",
            `There is no key ${id}. \`tributary key list ACCOUNT\` shows the keys of an account.`,
          );
        return keyOf(row);
      }),
  };
}

/** Inside the caller's transaction. */
export async function createKey(query: Query, order: NewKey, clock: Clock): Promise<KeyRecord> {
  await ensureAccount(query, order.accountId);
  ensureName("key", order.name);
  const values = [order.id, order.accountId, order.name, Buffer.from(order.secretHash), clock()];
  const [row] = await query(insert, ...values);
  if (row === undefined) throw new Error("ledger: the key was not written");
  return keyOf(row);
}

async function ensureAccount(query: Query, id: string): Promise<void> {
  if ((await query(findAccount, id)).length === 0) throw unknownAccount(id);
}
