import { type Account, type AccountId, accountOf, type CreditNanos } from "../records.ts";
import { OperatorError } from "../operator-error.ts";
import {
  ensureAmount,
  ensureName,
  ensureNote,
  ensurePossible,
  unknownAccount,
} from "../operator-input.ts";
import type { NewAccount, PostgresOperations } from "../store-operations.ts";
import { bytesOf, textOf, numberOf } from "../row.ts";
import type { Clock, Database, Query } from "./database.ts";
import { createKey, openKeyAdministration } from "./key-administration.ts";

type Administration = Pick<
  PostgresOperations,
  | "createAccount"
  | "createFirstAccount"
  | "listAccounts"
  | "showAccount"
  | "creditAccount"
  | "setAccountStatus"
  | "createKey"
  | "listKeys"
  | "revokeKey"
  | "sealKeys"
  | "addSealKey"
>;

const accountColumns = "id, name, balance_nanos, held_nanos, status, created_at_ms";
const find = {
  name: "account",
  text: `select ${accountColumns} from tributary.account where id = $1`,
};
const findLocked = { name: "account-locked", text: `${find.text} for no key update` };
const list = {
  name: "accounts",
  text: `select ${accountColumns} from tributary.account order by created_at_ms, id`,
};
const any = { name: "any-account", text: "select 1 as one from tributary.account limit 1" };
const insert = {
  name: "create-account",
  text: `insert into tributary.account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
    values ($1, $2, 'active', 0, 0, 0, 0, coalesce($3, tributary.now_ms()))`,
};
const setStatus = {
  name: "set-status",
  text: `update tributary.account set status = $2 where id = $1 returning ${accountColumns}`,
};
const move = {
  name: "move",
  text: "select tributary.move($1, $2, $3, 0, 0, 'operator', null, $4, coalesce($5, tributary.now_ms()))",
};
// Two transactions may both find no account; under this lock the second finds that of the first.
const lockFirst = {
  name: "lock-first",
  text: "select pg_advisory_xact_lock(92706122727426)",
};
const sealKeyList = {
  name: "seal-keys",
  text: `select id, secret, coalesce($1, tributary.now_ms()) - created_at_ms as age_ms
    from tributary.seal_key order by sequence`,
};
const sealKeyInsert = {
  name: "create-seal-key",
  text: `insert into tributary.seal_key (id, secret, created_at_ms)
    values ($1, $2, coalesce($3, tributary.now_ms()))`,
};

/** What the commands do. */
export function openAdministration(database: Database, clock: Clock): Administration {
  const create = (query: Query, order: NewAccount): Promise<Account> =>
    createAccount(query, order, clock);
  return {
    ...openKeyAdministration(database, clock),
    createAccount: (order) => database.transaction((query) => create(query, order)),
    createFirstAccount: ({ account, key }) =>
      database.transaction(async (query) => {
        if ((await query(any)).length > 0) return null;
        await query(lockFirst);
        if ((await query(any)).length > 0) return null;
        return { account: await create(query, account), key: await createKey(query, key, clock) };
      }),
    listAccounts: async () => (await database.queryUntimed(list)).map(accountOf),
    showAccount: (id) => show(database.query, id),
    creditAccount: ({ amountNanos, id, note }) =>
      database.transaction(async (query) => {
        const before = await show(query, id, findLocked);
        ensureAmount(amountNanos);
        ensureNote(note);
        ensurePossible(before, amountNanos);
        await credit(query, { id: before.id, amountNanos, note }, clock);
        return show(query, id);
      }),
    setAccountStatus: ({ id, status }) =>
      database.transaction(async (query) => {
        const [row] = await query(setStatus, id, status);
        if (row === undefined) throw unknownAccount(id);
        return accountOf(row);
      }),
    sealKeys: async (fresh) => {
      const there = await database.query(sealKeyList, clock());
      const rows =
        there.length > 0
          ? there
          : await database.transaction(async (query) => {
              await query(lockFirst);
              if ((await query(sealKeyList, clock())).length === 0)
                await query(sealKeyInsert, fresh.id, Buffer.from(fresh.secret), clock());
              return query(sealKeyList, clock());
            });
      return rows.map((row) => ({
        id: textOf(row, "id"),
        secret: bytesOf(row, "secret"),
        ageMs: numberOf(row, "age_ms"),
      }));
    },
    addSealKey: async (fresh) => {
      await database.query(sealKeyInsert, fresh.id, Buffer.from(fresh.secret), clock());
      return { ...fresh, ageMs: 0 };
    },
  };
}

async function createAccount(query: Query, order: NewAccount, clock: Clock): Promise<Account> {
  const { creditNanos, id, name } = order;
  ensureName("account", name);
  ensureAmount(creditNanos);
  if (creditNanos < 0n)
    throw new OperatorError("invalid_value", "An account starts with a credit of 0 or more.");
  await query(insert, id, name, clock());
  if (creditNanos > 0n)
    await credit(query, { id, amountNanos: creditNanos, note: "starting credit" }, clock);
  return show(query, id);
}

async function credit(
  query: Query,
  order: {
    readonly id: AccountId;
    readonly amountNanos: CreditNanos;
    readonly note: string | null;
  },
  clock: Clock,
): Promise<void> {
  const kind = order.amountNanos < 0n ? "takeback" : "credit";
  await query(move, order.id, kind, order.amountNanos, order.note, clock());
}

async function show(query: Query, id: string, statement = find): Promise<Account> {
  const [row] = await query(statement, id);
  if (row === undefined) throw unknownAccount(id);
  return accountOf(row);
}
