import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { expect, test } from "vitest";
import type { Change } from "../../src/ledger/administration/changed-by.ts";
import { accounts } from "../../src/ledger/migrations/sqlite/0001-accounts.ts";
import { openAccounts } from "../../src/ledger/sqlite/accounts.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { openStore, type SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, openTill, run, temporaryLedger } from "./support.ts";

/** The actor of all that operators did before each had a name. */
const operator = { by: { actor: "operator", once: null } } as unknown as Change<object>;

/** Of a kind that no operation of now writes. */
function takeBack(path: string): void {
  using database = new DatabaseSync(path, { readBigInts: true });
  const amounts = { balanceDeltaNanos: -7n, heldDeltaNanos: 0n, runningDelta: 0 } as const;
  const about = {
    kind: "takeback",
    actor: "operator",
    requestId: null,
    note: "line\nfeed",
  } as const;
  database.exec("begin immediate");
  openAccounts(database).move("acct_bob", { ...amounts, ...about }, 99_000);
  database.exec("commit");
}

function spend(store: SqliteStore, path: string): void {
  const ann = openTill(store, "ann", 1_000_000_000n, operator);
  const bob = openTill(store, "bob", 1_000_000_000n, operator);
  openTill(store, "idle", 0n);
  for (let n = 0; n < 20; n += 1) {
    ann.admit(`req_a${String(n)}`, {}, n);
    bob.admit(`req_b${String(n)}`, {}, n);
    ann.settle(`req_a${String(n)}`, [n, n], n + 1);
    if (n % 3 === 0) run(store, "expire", null, n + 70_000);
    else bob.settle(`req_b${String(n)}`, null, n + 2);
  }
  takeBack(path);
  ann.admit("req_open", {}, 99_001);
}

const verification = { against: [], listHeads: true } as const;

/** Copies what a ledger of the first version would have. */
function copyAsFirstVersion(from: string, to: string): void {
  using source = new DatabaseSync(from, { readBigInts: true });
  using target = new DatabaseSync(to, { readBigInts: true });
  target.exec(
    `${accounts}; pragma application_id = ${String(0x5452_4942)}; pragma user_version = 1;`,
  );
  for (const table of ["account", "api_key", "reservation", "entry"]) {
    const columns = target
      .prepare(`select name from pragma_table_info('${table}')`)
      .all()
      .map((row) => String(row["name"]));
    const insert = target.prepare(
      `insert into ${table} (${columns.join()}) values (${columns.map(() => "?").join()})`,
    );
    for (const row of source.prepare(`select ${columns.join()} from ${table}`).all())
      insert.run(...columns.map((column): SQLInputValue => row[column] ?? null));
  }
}

test("a ledger from before the chain is chained at its start, as it would have been all along", () => {
  using chained = temporaryLedger();
  using old = temporaryLedger();
  const settings = { ...defaultSettings, path: chained.path };
  using store = openStore(settings);
  spend(store, chained.path);
  copyAsFirstVersion(chained.path, old.path);
  const wanted = run(store, "verify", verification);
  expect(wanted).toMatchObject({ ok: true, entries: 84 });
  {
    using migrated = openStore({ ...settings, path: old.path });
    expect(run(migrated, "verify", verification)).toEqual(wanted);
    openTill(migrated, "new", 10_000_000n).admit("req_x");
    expect(run(migrated, "verify", verification).ok).toBe(true);
  }
  // A second start has nothing to do, and the journal is guarded as in a new ledger.
  using again = openStore({ ...settings, path: old.path });
  expect(run(again, "verify", verification).ok).toBe(true);
  using raw = new DatabaseSync(old.path);
  expect(() => raw.exec("update entry set note = 'x'")).toThrow(/never changed/);
  expect(() => raw.exec("delete from entry")).toThrow(/never removed/);
});

test("notes of any characters are chained as they are stored", () => {
  using ledger = temporaryLedger();
  using store = openStore({ ...defaultSettings, path: ledger.path });
  openTill(store, "ann", 5n);
  for (const note of ["", "\n", "=x", "half \ud800 a pair", "zero \u0000 byte", "💧".repeat(250)])
    run(store, "creditAccount", { id: "acct_ann", amountNanos: 1n, note });
  expect(run(store, "verify", verification)).toMatchObject({ ok: true, entries: 7 });
});

test("amounts beyond what a float holds are added up exactly", () => {
  using ledger = temporaryLedger();
  using store = openStore({ ...defaultSettings, path: ledger.path });
  const most = 1_000_000_000_000_000_000n;
  openTill(store, "rich", most - 1n);
  expect(run(store, "verify", verification).ok).toBe(true);
  using raw = new DatabaseSync(ledger.path);
  raw.exec("update account set balance_nanos = balance_nanos - 1");
  expect(run(store, "verify", verification).problems[0]?.code).toBe("balance-differs");
});

test("verifying neither waits for a writer nor keeps one waiting, and sees one moment", async () => {
  using file = temporaryLedger();
  {
    using store = openStore({ ...defaultSettings, path: file.path });
    const till = openTill(store, "ann", 900_000_000_000n);
    for (let n = 0; n < 1_500; n += 1) {
      till.admit(`req_${String(n)}`, { caller: till.authorize(0, false) });
      till.settle(`req_${String(n)}`, [1, 1]);
    }
  }
  using lock = new DatabaseSync(file.path);
  const settings = { ...defaultSettings, path: file.path, busyMs: 200 };
  await using reader = await openSqliteLedger(settings, { now: Date.now });
  await using writer = await openSqliteLedger(settings, { now: Date.now });
  lock.exec("begin immediate; update account set balance_nanos = balance_nanos - 1");
  expect((await reader.verify([])).problems).toEqual([]);
  lock.exec("rollback");

  const progress = { done: false };
  const moments = new Set<number>();
  const verifying = (async () => {
    const reports = [];
    while (!progress.done || reports.length === 0) {
      const report = await reader.verify([]);
      moments.add(report.entries);
      reports.push(report);
    }
    return reports;
  })();
  let written = 0;
  // On a busy machine 150 entries may be written before the first reading is over.
  for (; written < 150 || (moments.size < 2 && written < 10_000); written += 1)
    await writer.creditAccount("acct_ann", 1n, null);
  progress.done = true;
  const reports = await verifying;
  expect(reports.filter(({ ok }) => !ok)).toEqual([]);
  const entries = reports.map((report) => report.entries);
  expect(entries).toEqual(entries.toSorted((one, other) => one - other));
  expect(entries.at(-1)).toBeLessThanOrEqual(3_001 + written);
  expect(moments.size).toBeGreaterThan(1);
});
