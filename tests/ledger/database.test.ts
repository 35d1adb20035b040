import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { oldestReader } from "../../src/ledger/migrations/oldest-reader.ts";
import { accounts } from "../../src/ledger/migrations/sqlite/0001-accounts.ts";
import { sqliteMigrations } from "../../src/ledger/migrations/sqlite/migrations.ts";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { auditProblems, defaultSettings, openTill, temporaryLedger } from "./support.ts";

const full = { synchronous: "full" } as const;

function setting(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
}

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

describe("the ledger's file", () => {
  test("is for its owner alone, and so is the folder that is made for it", () => {
    using ledger = temporaryLedger();
    const folder = join(ledger.folder, "new", "data");
    const path = join(folder, "ledger.sqlite");
    using store = openStore({ ...defaultSettings, path });
    openTill(store, "a", 5n).authorize();
    expect(mode(folder)).toBe("700");
    for (const suffix of ["", "-wal", "-shm", "-rate", "-rate-wal", "-rate-shm"])
      expect([suffix, mode(path + suffix)]).toEqual([suffix, "600"]);
  });

  test("is narrowed when it was readable by others", () => {
    using ledger = temporaryLedger();
    writeFileSync(ledger.path, "", { mode: 0o644 });
    chmodSync(ledger.path, 0o644);
    openDatabase({ ...full, path: ledger.path }).close();
    expect(mode(ledger.path)).toBe("600");
  });

  test("syncs every commit of money, and none of the rate window", () => {
    using ledger = temporaryLedger();
    using database = openDatabase({ ...full, path: ledger.path });
    expect(setting(database, "main.journal_mode")).toBe("wal");
    expect(setting(database, "main.synchronous")).toBe(2n);
    expect(setting(database, "main.fullfsync")).toBe(1n);
    expect(setting(database, "rate.journal_mode")).toBe("wal");
    expect(setting(database, "rate.synchronous")).toBe(1n);
    expect(setting(database, "foreign_keys")).toBe(1n);
  });

  test("syncs less where that was asked for", () => {
    using ledger = temporaryLedger();
    using database = openDatabase({ synchronous: "normal", path: ledger.path });
    expect(setting(database, "main.synchronous")).toBe(1n);
  });

  test("is opened again as it was", () => {
    using ledger = temporaryLedger();
    const settings = { ...defaultSettings, path: ledger.path };
    {
      using store = openStore(settings);
      openTill(store, "a", 5n);
    }
    using again = openStore(settings);
    const [answer] = again.execute([{ name: "showAccount", argument: "acct_a", nowMs: 0 }]);
    expect(answer).toMatchObject({ ok: true, value: { balanceNanos: 5n } });
    expect(auditProblems(ledger.path)).toEqual([]);
  });

  test("has the same schema whether it is new or of the first version", () => {
    using ledger = temporaryLedger();
    using older = new DatabaseSync(ledger.path);
    older.exec(`${accounts}; pragma application_id = 1414678850; pragma user_version = 1`);
    using upgraded = openDatabase({ ...full, path: ledger.path });
    using fresh = openDatabase({ ...full, path: ":memory:" });
    const read = "select type, name, tbl_name, sql from main.sqlite_schema order by rowid";
    expect(fresh.prepare(read).all().length).toBeGreaterThan(50);
    expect(upgraded.prepare(read).all()).toEqual(fresh.prepare(read).all());
  });

  test("works without the rate window's file, which may be thrown away", () => {
    using ledger = temporaryLedger();
    openDatabase({ ...full, path: ledger.path }).close();
    using rate = new DatabaseSync(`${ledger.path}-rate`);
    rate.exec("drop table ticket; create table ticket (other text); pragma user_version = 99");
    rate.close();
    using store = openStore({ ...defaultSettings, path: ledger.path });
    expect(openTill(store, "a", 5n).authorize().rate.remaining).toBe(599);
  });

  test.each([
    ["another program's database", "create table theirs (x)", "of another program"],
    [
      "a newer version's ledger",
      "create table x (y); pragma application_id = 1414678850; pragma user_version = 1000",
      "newer version of Tributary",
    ],
  ])("refuses %s and leaves it as it was", (_name, sql, words) => {
    using ledger = temporaryLedger();
    using other = new DatabaseSync(ledger.path);
    other.exec(sql);
    expect(() => openDatabase({ ...full, path: ledger.path })).toThrow(words);
    expect(other.prepare("select count(*) as count from sqlite_schema").get()).toEqual({
      count: 1,
    });
  });

  test("opens a newer version's ledger that says that this version may, and leaves its number", () => {
    using ledger = temporaryLedger();
    openDatabase({ ...full, path: ledger.path }).close();
    using newer = new DatabaseSync(ledger.path);
    const known = sqliteMigrations.length;
    newer.exec("pragma user_version = 1000");
    openDatabase({ ...full, path: ledger.path }).close();
    expect(Number(setting(newer, "user_version"))).toBe(1000);
    newer.prepare("update schema_readers set oldest = ?").run(known + 1);
    expect(() => openDatabase({ ...full, path: ledger.path })).toThrow(
      `newer version of Tributary (schema 1000, this one knows ${String(known)})`,
    );
  });

  test("is marked for the oldest version that reads what all its steps left", () => {
    using ledger = temporaryLedger();
    using database = openDatabase({ ...full, path: ledger.path });
    expect(database.prepare("select oldest from schema_readers").get()).toEqual({ oldest: 5n });
    expect(oldestReader([{ oldest: 5 }, { oldest: 7 }, { oldest: 6 }])).toBe(7);
  });

  test.each([
    [
      "a folder",
      (path: string) => mkdirSync(path, { recursive: true }),
      /cannot be opened: EISDIR.*Check that its folder exists/,
    ],
    [
      "text",
      (path: string) => {
        writeFileSync(path, "this is no database, only words. ".repeat(100));
      },
      /cannot be opened: file is not a database\. The file is no ledger.*Name another file/,
    ],
  ])("says what to do when the path is %s", (_name, prepare, words) => {
    using ledger = temporaryLedger();
    prepare(ledger.path);
    expect(() => openDatabase({ ...full, path: ledger.path })).toThrow(words);
  });

  test("says what to do when the folder cannot be made", () => {
    using ledger = temporaryLedger();
    const file = join(ledger.folder, "file");
    writeFileSync(file, "");
    const path = join(file, "ledger.sqlite");
    expect(() => openDatabase({ ...full, path })).toThrow(`The ledger ${path} cannot be opened`);
    expect(existsSync(path)).toBe(false);
  });
});

describe("the schema", () => {
  test.each([
    ["a balance below zero", "update account set balance_nanos = -1, held_nanos = 0, running = 0"],
    ["more held than there is", "update account set held_nanos = balance_nanos + 1"],
    ["less than nothing held", "update account set held_nanos = -1"],
    ["fewer than no request running", "update account set running = -1"],
    ["credit held by nothing that runs", "update account set running = 0"],
    [
      "a charge above the reservation",
      "update reservation set state = 'settled', outcome = 'x', resolved_at_ms = 1, charged_nanos = reserved_nanos + 1",
    ],
    [
      "a charge after expiry",
      "update reservation set state = 'expired', outcome = 'x', resolved_at_ms = 1, charged_nanos = 1",
    ],
    ["an ending without a charge", "update reservation set state = 'settled'"],
    ["a changed journal", "update entry set balance_delta_nanos = 0"],
    ["a shortened journal", "delete from entry"],
    ["a reservation made twice", "insert into reservation select * from reservation"],
    ["an entry written twice", "insert into entry select * from entry"],
    [
      "a key of nobody",
      "insert into api_key values ('acct_none', 'key_x', 'x', zeroblob(32), 0, null)",
    ],
    [
      "a key without its hash",
      "insert into api_key values ('acct_a', 'key_x', 'x', zeroblob(0), 0, null)",
    ],
    ["an amount that is no integer", "update account set balance_nanos = 0.5"],
  ])("does not hold %s", (_name, sql) => {
    using ledger = temporaryLedger();
    using store = openStore({ ...defaultSettings, path: ledger.path });
    openTill(store, "a", 5_000_000n).admit("req_1");
    using raw = new DatabaseSync(ledger.path);
    expect(() => {
      raw.exec(sql);
    }).toThrow();
    expect(auditProblems(ledger.path)).toEqual([]);
  });
});
