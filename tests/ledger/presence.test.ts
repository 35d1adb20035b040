import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, utimesSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import {
  countPresent,
  isPresent,
  openPresence,
  removeLeftOvers,
} from "../../src/ledger/sqlite/presence.ts";
import { openStore, type SqliteStore, type StoreSettings } from "../../src/ledger/sqlite/store.ts";
import {
  auditProblems,
  defaultSettings,
  failureOf,
  openTill,
  run,
  temporaryLedger,
} from "./support.ts";

const credit = 1_000_000_000n;
const presenceUrl = new URL("../../src/ledger/sqlite/presence.ts", import.meta.url).href;

/** A process of its own that says that it lives, until it is killed; its timer is real time, and does nothing but keep it. */
async function livingProcess(path: string, owner: string): Promise<{ kill(): Promise<void> }> {
  const program = `
    const { openPresence } = await import(${JSON.stringify(presenceUrl)});
    globalThis.presence = openPresence(${JSON.stringify(path)}, ${JSON.stringify(owner)});
    process.stdout.write("there");
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return {
    async kill() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

function storeOf(path: string, settings: Partial<StoreSettings>): SqliteStore {
  return openStore({ ...defaultSettings, ...settings, path });
}

describe("a process on a SQLite ledger", () => {
  test("that is killed frees its account at once; one that lives and is silent keeps it for its lease", async () => {
    using ledger = temporaryLedger();
    const { path } = ledger;
    const child = await livingProcess(path, "child");
    using childs = storeOf(path, { owner: "child" });
    using mine = storeOf(path, { owner: "mine" });
    const till = openTill(childs, "a", credit);
    for (const id of ["req_1", "req_2", "req_3", "req_4"] as const) till.admit(id, {}, 1_000);
    expect(run(mine, "giveBackDead", null, 50_000)).toEqual({
      count: 0,
      known: true,
      againInMs: null,
    });
    expect(till.show().heldNanos).toBeGreaterThan(0n);
    await child.kill();
    expect(run(mine, "giveBackDead", null, 1_001)).toEqual({
      count: 4,
      known: true,
      againInMs: null,
    });
    expect(till.show()).toMatchObject({ heldNanos: 0n, balanceNanos: credit });
    // What comes too late is charged nothing, and its slot can be had again.
    expect(till.settle("req_1", [10, 10], 1_002)).toEqual({ chargedNanos: 0n, applied: false });
    expect(run(childs, "renew", ["req_2"], 1_002)).toEqual([]);
    till.admit("req_5", {}, 1_003);
    expect(auditProblems(path)).toEqual([]);
  });

  test("what is held by a process that says nothing of itself waits for its lease", () => {
    using ledger = temporaryLedger();
    using store = storeOf(ledger.path, {});
    openTill(store, "a", credit).admit("req_1", {}, 0);
    expect(run(store, "giveBackDead", null, 59_999)).toEqual({
      count: 0,
      known: true,
      againInMs: null,
    });
    expect(run(store, "expire", null, 60_000)).toBe(1);
  });

  test("takes its lock again when its file was removed, and learns that it looked dead", () => {
    using ledger = temporaryLedger();
    using presence = openPresence(ledger.path, "me");
    expect([presence.ensure(), isPresent(ledger.path, "me")]).toEqual([true, true]);
    rmSync(`${ledger.path}-process-me`);
    expect(isPresent(ledger.path, "me")).toBe(false);
    expect([presence.ensure(), isPresent(ledger.path, "me")]).toEqual([false, true]);
    expect(presence.ensure()).toBe(true);
  });

  test("what killed processes left beside the ledger is removed, not what one is about to lock", async () => {
    using ledger = temporaryLedger();
    const child = await livingProcess(ledger.path, "killed");
    using presence = openPresence(ledger.path, "me");
    expect(countPresent(ledger.path)).toBe(2);
    await child.kill();
    expect(countPresent(ledger.path)).toBe(1);
    const left = `${ledger.path}-process-killed`;
    removeLeftOvers(ledger.path, Date.now());
    expect(existsSync(left)).toBe(true);
    utimesSync(left, 0, 0);
    utimesSync(`${ledger.path}-process-me`, 0, 0);
    removeLeftOvers(ledger.path, Date.now());
    expect([existsSync(left), presence.ensure()]).toEqual([false, true]);
  });

  test("says so from before its ledger is open until after it is closed", async () => {
    using ledger = temporaryLedger();
    const parts = { now: Date.now, serves: true } as const;
    {
      await using opened = await openSqliteLedger({ ...defaultSettings, path: ledger.path }, parts);
      expect(countPresent(ledger.path)).toBe(1);
      expect(await opened.giveBackDead()).toEqual({ count: 0, known: true, againInMs: null });
    }
    expect(countPresent(ledger.path)).toBe(0);
  });
});

describe("a lease that no process that lives can have", () => {
  test("is given back when the clock that made it was ahead", () => {
    using ledger = temporaryLedger();
    using store = storeOf(ledger.path, {});
    const till = openTill(store, "a", credit);
    const year = 31_536_000_000;
    till.admit("req_1", {}, year);
    // A clock that is corrected by less than a lease takes nothing from any process.
    till.admit("req_2", {}, 60_000);
    expect(run(store, "expire", null, 0)).toBe(1);
    expect(till.show().heldNanos).toBeGreaterThan(0n);
    expect(run(store, "renew", ["req_1", "req_2"], 0)).toEqual(["req_2"]);
    expect(auditProblems(ledger.path)).toEqual([]);
  });

  test("goes by the lease of the process that made it, not of the one that looks", () => {
    using ledger = temporaryLedger();
    using long = storeOf(ledger.path, { leaseMs: 3_600_000 });
    using short = storeOf(ledger.path, { leaseMs: 2_000 });
    openTill(long, "a", credit).admit("req_1", {}, 0);
    expect(run(short, "expire", null, 1_000)).toBe(0);
    expect(run(short, "expire", null, -3_600_001)).toBe(1);
  });

  test("is kept while its process lives, which corrects it itself", () => {
    using ledger = temporaryLedger();
    using presence = openPresence(ledger.path, "me");
    using store = storeOf(ledger.path, { owner: "me" });
    openTill(store, "a", credit).admit("req_1", {}, 1_000_000_000);
    expect(run(store, "expire", null, 0)).toBe(0);
    expect(run(store, "renew", ["req_1"], 0)).toEqual(["req_1"]);
    presence[Symbol.dispose]();
    expect(run(store, "expire", null, 60_000)).toBe(1);
  });
});

test("a 429 for slots tells when one can be free", () => {
  using ledger = temporaryLedger();
  using store = storeOf(ledger.path, {});
  const till = openTill(store, "a", credit);
  for (const id of ["req_1", "req_2", "req_3", "req_4"] as const) till.admit(id, {}, 0);
  const caller = till.authorize(0, false);
  const adviceAt = (nowMs: number): number | undefined =>
    failureOf(() => till.admit("req_5", { caller }, nowMs)).facts.retryAfterSeconds;
  // While its process renews, a request may end at any time.
  expect(adviceAt(1_000)).toBe(2);
  run(store, "renew", ["req_1", "req_2", "req_3", "req_4"], 20_000);
  expect(adviceAt(21_000)).toBe(2);
  // It has fallen silent: what is left of the lease that ends first.
  run(store, "renew", ["req_2"], 30_000);
  expect(adviceAt(55_000)).toBe(2);
  expect(adviceAt(65_500)).toBe(15);
  expect(adviceAt(79_999)).toBe(2);
});
