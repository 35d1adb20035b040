import type { DatabaseSync } from "node:sqlite";
import { type Account, accountOf } from "../records.ts";
import { OperatorError } from "../operator-error.ts";
import type { Accounts } from "./accounts.ts";
import { openKeyAdministration, type KeyAdministration } from "./key-administration.ts";
import {
  ensureAmount,
  ensureName,
  ensureNote,
  ensurePossible,
  unknownAccount,
} from "../operator-input.ts";
import type { NewAccount, StoreOperations } from "../store-operations.ts";
import { bytesOf, numberOf, textOf } from "../row.ts";
import { getRow } from "./get-row.ts";

type Administration = KeyAdministration &
  Pick<
    StoreOperations,
    | "createAccount"
    | "createFirstAccount"
    | "listAccounts"
    | "showAccount"
    | "creditAccount"
    | "setAccountStatus"
    | "sealKeys"
    | "addSealKey"
  >;

const accountColumns = "id, name, balance_nanos, held_nanos, status, created_at_ms";

/** What the commands do. Prepares the statements once. */
export function openAdministration(database: DatabaseSync, accounts: Accounts): Administration {
  const find = database.prepare(`select ${accountColumns} from account where id = ?`);
  const list = database.prepare(`select ${accountColumns} from account order by created_at_ms, id`);
  const count = database.prepare("select count(*) as count from account");
  const insert = database.prepare(
    `insert into account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
     values (?, ?, 'active', 0, 0, 0, 0, ?)`,
  );
  const setStatus = database.prepare("update account set status = ? where id = ?");
  const keys = openKeyAdministration(database);

  const show = (id: string): Account => {
    const row = getRow(find, id);
    if (row === null) throw unknownAccount(id);
    return accountOf(row);
  };
  const create = (order: NewAccount, nowMs: number): Account => {
    ensureName("account", order.name);
    ensureAmount(order.creditNanos);
    if (order.creditNanos < 0n)
      throw new OperatorError("invalid_value", "An account starts with a credit of 0 or more.");
    insert.run(order.id, order.name, nowMs);
    if (order.creditNanos > 0n)
      accounts.move(order.id, credit(order.creditNanos, "starting credit"), nowMs);
    return show(order.id);
  };
  return {
    ...keys,
    createAccount: create,
    createFirstAccount(order, nowMs) {
      const row = getRow(count);
      if (row === null || numberOf(row, "count") > 0) return null;
      return { account: create(order.account, nowMs), key: keys.createKey(order.key, nowMs) };
    },
    listAccounts: () => list.all().map(accountOf),
    showAccount: show,
    creditAccount(order, nowMs) {
      const before = show(order.id);
      ensureAmount(order.amountNanos);
      ensureNote(order.note);
      ensurePossible(before, order.amountNanos);
      accounts.move(before.id, credit(order.amountNanos, order.note), nowMs);
      return show(order.id);
    },
    setAccountStatus(order) {
      show(order.id);
      setStatus.run(order.status, order.id);
      return show(order.id);
    },
    ...openSealKeys(database),
  };
}

function openSealKeys(database: DatabaseSync): Pick<Administration, "sealKeys" | "addSealKey"> {
  const list = database.prepare("select id, secret, created_at_ms from seal_key order by sequence");
  const insert = database.prepare(
    "insert into seal_key (id, secret, created_at_ms) values (?, ?, ?)",
  );
  return {
    sealKeys(fresh, nowMs) {
      if (list.all().length === 0) insert.run(fresh.id, fresh.secret, nowMs);
      return list.all().map((row) => ({
        id: textOf(row, "id"),
        secret: bytesOf(row, "secret"),
        ageMs: nowMs - numberOf(row, "created_at_ms"),
      }));
    },
    addSealKey(fresh, nowMs) {
      insert.run(fresh.id, fresh.secret, nowMs);
      return { ...fresh, ageMs: 0 };
    },
  };
}

function credit(amountNanos: bigint, note: string | null): Parameters<Accounts["move"]>[1] {
  return {
    kind: amountNanos < 0n ? "takeback" : "credit",
    balanceDeltaNanos: amountNanos,
    heldDeltaNanos: 0n,
    runningDelta: 0,
    actor: "operator",
    requestId: null,
    note,
  };
}
