import { expect, test } from "vitest";
import { openAccounts, type Movement } from "../../src/ledger/sqlite/accounts.ts";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";

test("credit moves only in a transaction: what belongs to the movement is committed with it", () => {
  using database = openDatabase({ path: ":memory:", synchronous: "normal" });
  database.exec(`insert into account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
    values ('acct_a', 'a', 'active', 0, 0, 0, 0, 0)`);
  const accounts = openAccounts(database);
  const credit: Movement = {
    kind: "credit",
    balanceDeltaNanos: 5n,
    heldDeltaNanos: 0n,
    runningDelta: 0,
    actor: "operator",
    requestId: null,
    note: null,
  };
  const balances = (): unknown => database.prepare("select balance_nanos from account").all();
  expect(() => accounts.move("acct_a", credit, 0)).toThrow(/outside a transaction/);
  expect(balances()).toEqual([{ balance_nanos: 0n }]);
  database.exec("begin");
  expect(accounts.move("acct_a", credit, 0).sequence).toBe(1);
  database.exec("commit");
  expect(balances()).toEqual([{ balance_nanos: 5n }]);
});
