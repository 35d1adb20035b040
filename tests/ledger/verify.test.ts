import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import {
  chainHash,
  type EntryKind,
  firstHead,
  formatHead,
  parseHead,
} from "../../src/ledger/journal.ts";
import { bigOf, numberOf, textOf, textOrNullOf } from "../../src/ledger/row.ts";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import type { VerifyReport } from "../../src/ledger/verify-journal.ts";
import { defaultSettings, openTill, run, temporaryLedger } from "./support.ts";
import { makeLedger } from "./made-ledger.ts";

// One ledger with two accounts; each test damages a copy as a program with the file in hands could, and says which
// entry is named. Of acct_ann: 1 credit, 2 reserve, 3 settle, 4 reserve, 5 settle, 6 takeback, 7 reserve, 8 expire,
// 9 reserve, which is open. Of acct_bob: 1 credit, 2 reserve, 3 settle.

const day = 86_400_000;
let ledger = temporaryLedger();

beforeEach(() => {
  ledger[Symbol.dispose]();
  ledger = temporaryLedger();
  makeLedger(ledger.path);
  using store = openStore({ ...defaultSettings, path: ledger.path });
  const ann = openTill(store, "ann", 10_000_000n);
  const bob = openTill(store, "bob", 20_000_000n);
  ann.admit("req_a1", {}, 1_000);
  ann.settle("req_a1", [10, 20], 1_001);
  bob.admit("req_b1", {}, 1_002);
  bob.settle("req_b1", [10, 20], 1_003);
  ann.admit("req_a2", {}, 1_004);
  ann.settle("req_a2", null, 1_005);
  const order = { id: "acct_ann", amountNanos: -1_000n, note: "wrong\namount" };
  run(store, "creditAccount", order, 1_006);
  ann.admit("req_a3", {}, 1_007);
  run(store, "expire", null, day);
  ann.admit("req_a4", {}, day + 1);
});

function verify(...against: readonly string[]): VerifyReport {
  using store = openStore({ ...defaultSettings, path: ledger.path });
  return run(store, "verify", {
    listHeads: true,
    against: against.map((text) => {
      const head = parseHead(text);
      if (head === null) throw new Error(`no head: ${text}`);
      return head;
    }),
  });
}

/** The first bad entry, as `account:sequence code`. */
function firstBad(report: VerifyReport): string {
  expect(report.ok).toBe(false);
  const [problem] = report.problems;
  return `${problem?.account ?? ""}:${String(problem?.sequence)} ${problem?.code ?? ""}`;
}

/** As a program that owns the file: no trigger, no key and no check is in the way. */
function damage(sql: string, ...values: readonly SQLInputValue[]): void {
  using database = openRaw();
  if (values.length === 0) database.exec(sql);
  else database.prepare(sql).run(...values);
}

function openRaw(): DatabaseSync {
  const database = new DatabaseSync(ledger.path, {
    readBigInts: true,
    enableForeignKeyConstraints: false,
  });
  database.exec(
    `pragma ignore_check_constraints = 1; drop trigger if exists entry_is_never_changed;
     drop trigger if exists entry_is_never_removed; drop trigger if exists kept_credit_is_never_changed;
     drop trigger if exists kept_credit_is_never_removed;`,
  );
  return database;
}

/** Makes the whole chain of an account anew, and its head: what a forger would do who knows how. */
function rechain(accountId: string): void {
  using database = openRaw();
  let head = firstHead;
  const update = database.prepare(
    "update entry set hash = ? where account_id = ? and sequence = ?",
  );
  for (const row of database
    .prepare("select * from entry where account_id = ? order by sequence")
    .all(accountId)) {
    const sequence = numberOf(row, "sequence");
    head = chainHash(head, {
      accountId,
      sequence,
      atMs: numberOf(row, "at_ms"),
      kind: textOf(row, "kind") as EntryKind,
      balanceDeltaNanos: bigOf(row, "balance_delta_nanos"),
      heldDeltaNanos: bigOf(row, "held_delta_nanos"),
      actor: textOf(row, "actor"),
      requestId: textOrNullOf(row, "request_id"),
      reference: textOrNullOf(row, "reference"),
      receipt: textOrNullOf(row, "receipt"),
      note: textOrNullOf(row, "note"),
    });
    update.run(head, accountId, sequence);
  }
  database.prepare("update account set head = ? where id = ?").run(head, accountId);
}

function headAt(accountId: `acct_${string}`, sequence: number): string {
  using database = openRaw();
  const row = database
    .prepare("select hash from entry where account_id = ? and sequence = ?")
    .get(accountId, sequence);
  return formatHead({ accountId, sequence, hash: row?.["hash"] as Uint8Array });
}

test("a ledger that nobody has damaged verifies, also against every head it ever had", () => {
  const report = verify(headAt("acct_ann", 1), headAt("acct_ann", 9), headAt("acct_bob", 3));
  expect(report).toEqual({
    ok: true,
    entries: 12,
    accounts: 2,
    problems: [],
    problemsTotal: 0,
    heads: [headAt("acct_ann", 9), headAt("acct_bob", 3)],
  });
});

describe("a damage names the first bad entry:", () => {
  test("amount", () => {
    damage(
      "update entry set balance_delta_nanos = -1 where account_id = 'acct_ann' and sequence = 3",
    );
    expect(firstBad(verify())).toBe("acct_ann:3 entry-changed");
  });

  test.each([
    "at_ms = 5",
    "kind = 'takeback'",
    "actor = 'operator'",
    "note = 'x'",
    "held_delta_nanos = 0",
  ])("content, %s", (change) => {
    damage(`update entry set ${change} where account_id = 'acct_ann' and sequence = 4`);
    expect(firstBad(verify())).toBe("acct_ann:4 entry-changed");
  });

  test.each(["at_ms = 1 << 60", "balance_delta_nanos = -(1 << 62)"])(
    "numbers that JavaScript cannot count with, %s",
    (change) => {
      damage(`update entry set ${change} where account_id = 'acct_ann' and sequence = 3`);
      expect(firstBad(verify())).toBe("acct_ann:3 entry-changed");
    },
  );

  test("a place in the journal that JavaScript cannot count to", () => {
    damage("update entry set sequence = 1 << 60 where account_id = 'acct_ann' and sequence = 9");
    expect(firstBad(verify())).toBe("acct_ann:9 entry-missing");
    damage("update reservation set reserved_sequence = 1 << 60 where request_id = 'req_a4'");
    expect(firstBad(verify())).toBe("acct_ann:9 entry-missing");
  });

  test("order", () => {
    damage(`update entry set sequence = 100 where account_id = 'acct_ann' and sequence = 3;
            update entry set sequence = 3 where account_id = 'acct_ann' and sequence = 4;
            update entry set sequence = 4 where account_id = 'acct_ann' and sequence = 100;`);
    expect(firstBad(verify())).toBe("acct_ann:3 entry-changed");
  });

  test("missing middle", () => {
    damage("delete from entry where account_id = 'acct_ann' and sequence in (4, 5)");
    expect(firstBad(verify())).toBe("acct_ann:4 entry-missing");
  });

  test("missing middle, the rest renumbered", () => {
    damage(`delete from entry where account_id = 'acct_ann' and sequence in (4, 5);
            update entry set sequence = sequence - 2 where account_id = 'acct_ann' and sequence > 5;
            update account set entries = entries - 2 where id = 'acct_ann'`);
    expect(firstBad(verify())).toBe("acct_ann:4 entry-changed");
  });

  test("missing tail", () => {
    damage("delete from entry where account_id = 'acct_ann' and sequence >= 8");
    expect(firstBad(verify())).toBe("acct_ann:8 entry-missing");
  });

  test("missing tail, the account's row made to fit: a head that was kept tells", () => {
    const kept = headAt("acct_bob", 3);
    damage(`delete from entry where account_id = 'acct_bob' and sequence >= 2;
            delete from reservation where account_id = 'acct_bob';
            update account set entries = 1, balance_nanos = 20000000,
              head = (select hash from entry where account_id = 'acct_bob' and sequence = 1) where id = 'acct_bob'`);
    expect(verify().ok).toBe(true);
    expect(firstBad(verify(kept))).toBe("acct_bob:2 entry-missing");
  });

  test("forged entry with its own chain recomputed: the receipts' heads tell", () => {
    damage(`update entry set balance_delta_nanos = 11000000 where account_id = 'acct_ann' and sequence = 1;
            update account set balance_nanos = balance_nanos + 1000000 where id = 'acct_ann'`);
    rechain("acct_ann");
    const report = verify();
    // The first entry that a receipt vouches for; what was forged is before it or in it.
    expect(firstBad(report)).toBe("acct_ann:3 receipt-differs");
  });

  test("forged entry with its own chain and all receipts recomputed: a head that was kept tells", () => {
    const [before, after] = [headAt("acct_bob", 1), headAt("acct_bob", 3)];
    damage(`update entry set at_ms = 999 where account_id = 'acct_bob' and sequence = 2;
            update reservation set admitted_at_ms = 999 where account_id = 'acct_bob'`);
    rechain("acct_bob");
    damage(`update reservation set head = (select hash from entry where entry.account_id = 'acct_bob'
              and sequence = resolved_sequence) where account_id = 'acct_bob'`);
    expect(verify(before).ok).toBe(true);
    expect(firstBad(verify(after))).toBe("acct_bob:3 head-differs");
  });

  test("foreign account's entry", () => {
    damage(`insert into entry select 'acct_bob', 4, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
              request_id, note, hash, reference, receipt from entry where account_id = 'acct_ann' and sequence = 3`);
    expect(firstBad(verify())).toBe("acct_bob:4 entry-changed");
  });

  test("foreign account's entry, chained as its own", () => {
    damage(`insert into entry select 'acct_bob', 4, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
              request_id, note, hash, reference, receipt from entry where account_id = 'acct_ann' and sequence = 3;
            update account set entries = 4, balance_nanos = balance_nanos - 90000, held_nanos = 0 where id = 'acct_bob'`);
    rechain("acct_bob");
    const report = verify();
    expect(firstBad(report)).toBe("acct_bob:4 resolved-twice");
  });

  test("an entry of no account", () => {
    damage(`insert into entry select 'acct_axe', 1, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
              request_id, note, hash, reference, receipt from entry where account_id = 'acct_ann' and sequence = 1`);
    expect(firstBad(verify())).toBe("acct_axe:1 account-missing");
  });

  test("balance row", () => {
    damage("update account set balance_nanos = balance_nanos + 1 where id = 'acct_bob'");
    expect(firstBad(verify())).toBe("acct_bob:null balance-differs");
  });

  test("held row", () => {
    damage("update account set held_nanos = held_nanos - 1 where id = 'acct_ann'");
    expect(firstBad(verify())).toBe("acct_ann:null held-differs");
  });

  test("running row", () => {
    damage("update account set running = 2 where id = 'acct_ann'");
    expect(firstBad(verify())).toBe("acct_ann:null running-differs");
  });

  test("head row", () => {
    damage("update account set head = zeroblob(32) where id = 'acct_ann'");
    expect(firstBad(verify())).toBe("acct_ann:9 head-differs");
  });

  test("duplicate settle, even one that is chained and fits the row", () => {
    damage(`insert into entry select account_id, 4, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor,
              request_id, note, hash, reference, receipt from entry where account_id = 'acct_bob' and sequence = 3;
            update account set entries = 4, balance_nanos = balance_nanos - 90000, held_nanos = held_nanos - 1400000
              where id = 'acct_bob'`);
    rechain("acct_bob");
    expect(firstBad(verify())).toBe("acct_bob:4 resolved-twice");
  });
});

describe("references and refunds are compared with their entries and receipts:", () => {
  beforeEach(() => {
    using store = openStore({ ...defaultSettings, path: ledger.path });
    const top = { id: "acct_bob", amountNanos: 7n, note: "paid", reference: "pi_1" } as const;
    run(store, "creditAccount", top, day);
    const refund = { kind: "refund", receipt: "req_b1", note: null } as const;
    run(store, "creditAccount", { id: "acct_bob", amountNanos: 5n, ...refund }, day);
  });

  test.each([
    ["update kept_credit set amount_nanos = 8 where reference = 'pi_1'", 4],
    ["update kept_credit set reference = 'pi_2' where reference = 'pi_1'", 4],
    ["update kept_credit set note = null where reference = 'pi_1'", 4],
    ["update kept_credit set hash = zeroblob(32) where reference = 'pi_1'", 4],
    ["delete from kept_credit where reference = 'pi_1'", 4],
  ])("%s", (change, sequence) => {
    expect(verify().problems).toEqual([]);
    damage(change);
    expect(firstBad(verify())).toBe(`acct_bob:${String(sequence)} reference-differs`);
  });

  test("an entry's own reference is in its hash", () => {
    damage("update entry set reference = 'pi_2' where reference = 'pi_1'");
    expect(firstBad(verify())).toBe("acct_bob:4 entry-changed");
  });

  test.each([
    "update reservation set refunded_nanos = 6 where request_id = 'req_b1'",
    "update reservation set refunded_nanos = 1 where request_id = 'req_a1'",
  ])("%s", (change) => {
    damage(change);
    const [problem] = verify().problems;
    expect(problem).toMatchObject({ code: "refund-differs", sequence: null });
  });

  test("a refund beyond the charge, in every row", () => {
    damage(`update entry set balance_delta_nanos = 90001 where receipt = 'req_b1';
            update kept_credit set amount_nanos = 90001 where receipt = 'req_b1';
            update reservation set refunded_nanos = 90001 where request_id = 'req_b1';
            update account set balance_nanos = balance_nanos + 89996 where id = 'acct_bob'`);
    rechain("acct_bob");
    damage(
      "update kept_credit set hash = (select hash from entry where receipt = 'req_b1') where receipt = 'req_b1'",
    );
    expect(verify().problems).toMatchObject([{ code: "refund-differs", request: "req_b1" }]);
  });
});

describe("a receipt is compared with its entries:", () => {
  test.each([
    ["charged_nanos = charged_nanos - 1"],
    ["output_tokens = output_tokens - 1"],
    ["state = 'expired'"],
    ["key_id = 'key_bob'"],
    ["resolved_sequence = 5"],
    ["resolved_at_ms = 7"],
    ["output_nanos_per_million = 1"],
    ["head = zeroblob(32)"],
    ["account_id = 'acct_bob'"],
  ])("%s", (change) => {
    damage(`update reservation set ${change} where request_id = 'req_a1'`);
    expect(firstBad(verify())).toMatch(/^acct_ann:[23] receipt-differs$/);
  });

  test("one without entries", () => {
    damage("update reservation set request_id = 'req_zz' where request_id = 'req_b1'");
    const { problems } = verify();
    expect(problems).toContainEqual(
      expect.objectContaining({ request: "req_zz", code: "receipt-differs" }),
    );
  });

  test("one that is gone", () => {
    damage("delete from reservation where request_id = 'req_b1'");
    expect(firstBad(verify())).toBe("acct_bob:2 receipt-differs");
  });

  test("a charge above what was reserved, in every row", () => {
    damage(`update entry set balance_delta_nanos = -1400001 where account_id = 'acct_bob' and sequence = 3;
            update reservation set charged_nanos = 1400001 where request_id = 'req_b1';
            update account set balance_nanos = 20000000 - 1400001 where id = 'acct_bob'`);
    rechain("acct_bob");
    expect(firstBad(verify())).toBe("acct_bob:3 entry-impossible");
  });

  test("credit that was never there, held", () => {
    damage(`update entry set held_delta_nanos = 99000000 where account_id = 'acct_bob' and sequence = 2;
            update entry set held_delta_nanos = -99000000 where account_id = 'acct_bob' and sequence = 3;
            update reservation set reserved_nanos = 99000000 where request_id = 'req_b1'`);
    rechain("acct_bob");
    expect(firstBad(verify())).toBe("acct_bob:2 overspent");
  });
});

describe("entries rolled into a checkpoint", () => {
  function rollUp(beforeMs: number): number {
    using store = openStore({ ...defaultSettings, path: ledger.path });
    return run(store, "checkpoint", { accountId: "acct_ann", beforeMs }, 2 * day).removed;
  }

  function remaining(): unknown {
    using database = openRaw();
    return database
      .prepare("select sequence, kind from entry where account_id = 'acct_ann' order by sequence")
      .all()
      .map((row) => [Number(row["sequence"]), row["kind"]]);
  }

  test("still verify, with what was open then settled later, and again", () => {
    // Entry 7 reserves, 8 resolves: the checkpoint falls between the two.
    expect(rollUp(day)).toBe(7);
    expect(remaining()).toEqual([
      [8, "expire"],
      [9, "reserve"],
      [10, "checkpoint"],
    ]);
    expect(verify().problems).toEqual([]);
    using store = openStore({ ...defaultSettings, path: ledger.path });
    run(store, "settle", settlement("req_a4"), 2 * day + 1);
    run(store, "creditAccount", { id: "acct_ann", amountNanos: 5n, note: null }, 2 * day + 2);
    expect(verify().problems).toEqual([]);
    expect(rollUp(3 * day)).toBe(5);
    expect(remaining()).toEqual([[13, "checkpoint"]]);
    expect(verify()).toMatchObject({ ok: true, entries: 4 });
    run(store, "creditAccount", { id: "acct_ann", amountNanos: 5n, note: null }, 3 * day);
    expect(verify().ok).toBe(true);
  });

  test("in steps, when there are many", () => {
    using store = openStore({ ...defaultSettings, path: ledger.path });
    for (let n = 0; n < 5_010; n += 1)
      run(store, "creditAccount", { id: "acct_bob", amountNanos: 1n, note: null }, day);
    // More than a page, which ends in the middle of an account.
    expect(verify()).toMatchObject({ ok: true, entries: 12 + 5_010 });
    const order = { accountId: "acct_bob", beforeMs: 2 * day };
    expect(run(store, "checkpoint", order, 2 * day)).toMatchObject({ removed: 5_000, done: false });
    expect(run(store, "checkpoint", order, 2 * day)).toMatchObject({ removed: 13, done: false });
    expect(run(store, "checkpoint", order, 2 * day)).toMatchObject({ removed: 0, done: true });
    expect(verify()).toMatchObject({ ok: true });
  });

  test("leave nothing to remove when there is nothing old", () => {
    expect(rollUp(0)).toBe(0);
    expect(remaining()).toHaveLength(9);
  });

  test("are not rolled up when they do not verify", () => {
    damage("update entry set note = 'x' where account_id = 'acct_ann' and sequence = 4");
    expect(() => rollUp(day)).toThrow(/Entry 4 of acct_ann/);
    expect(remaining()).toHaveLength(9);
  });

  test.each([
    ["balance_nanos = balance_nanos + 1"],
    ["held_nanos = held_nanos - 1"],
    ["credited_nanos = credited_nanos + 1"],
    ["hash = zeroblob(32)"],
    ["balance_nanos = balance_nanos + 1, credited_nanos = credited_nanos + 1"],
    ["sequence = 6"],
  ])("cannot be changed afterwards: %s", (change) => {
    rollUp(day);
    damage(`update checkpoint set ${change} where account_id = 'acct_ann'`);
    expect(firstBad(verify())).toMatch(/^acct_ann:[67] checkpoint-differs$/);
  });

  test("cannot be changed afterwards together with the balance", () => {
    rollUp(day);
    damage(`update checkpoint set balance_nanos = balance_nanos + 1, credited_nanos = credited_nanos + 1;
            update account set balance_nanos = balance_nanos + 1 where id = 'acct_ann'`);
    expect(firstBad(verify())).toBe("acct_ann:7 checkpoint-differs");
  });

  test("cannot be dropped", () => {
    rollUp(day);
    damage("delete from checkpoint");
    expect(firstBad(verify())).toBe("acct_ann:1 entry-missing");
  });

  test("keep their receipts' charges", () => {
    rollUp(day);
    damage("update reservation set charged_nanos = 0 where request_id = 'req_a1'");
    expect(firstBad(verify())).toBe("acct_ann:7 checkpoint-differs");
  });

  test("are told from a head that was kept before them", () => {
    const [old, edge, wrong] = [
      headAt("acct_ann", 3),
      headAt("acct_ann", 7),
      headAt("acct_ann", 6),
    ];
    rollUp(day);
    expect(verify(edge).ok).toBe(true);
    const report = verify(old);
    expect(firstBad(report)).toBe("acct_ann:3 head-differs");
    expect(report.problems[0]?.message).toContain("newer head");
    expect(verify(wrong.replace(":6:", ":7:")).ok).toBe(false);
  });
});

test("the journal itself refuses to be changed, or removed without a checkpoint", () => {
  using database = new DatabaseSync(ledger.path);
  expect(() => database.exec("update entry set note = 'x'")).toThrow(/never changed/);
  expect(() => database.exec("delete from entry")).toThrow(/never removed/);
});

test("damages all over are counted, and the first of them listed", () => {
  damage("update entry set note = 'x'");
  using store = openStore({ ...defaultSettings, path: ledger.path });
  for (let n = 0; n < 120; n += 1)
    run(store, "creditAccount", { id: "acct_bob", amountNanos: 1n, note: null }, day);
  damage("update entry set note = 'y'");
  const report = verify();
  expect(report.problems).toHaveLength(100);
  expect(report.problemsTotal).toBeGreaterThanOrEqual(132);
});

function settlement(requestId: `req_${string}`): Parameters<typeof run<"settle">>[2] {
  return {
    requestId,
    accountId: "acct_ann",
    outcome: "completed",
    usage: { inputTokens: 5, cachedInputTokens: 0, outputTokens: 7, reasoningTokens: 0 },
    firstOutputMs: 3,
    totalMs: 9,
  };
}
