import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { UsageQuery } from "../../src/ledger/usage-sums.ts";
import { receiptToJson } from "../../src/ledger/receipt.ts";
import { usageStatement } from "../../src/ledger/sqlite/reports.ts";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import { openStore, type SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, openTill, run, secretHash } from "./support.ts";

const at = (text: string): number => Date.parse(text);
let store: SqliteStore;

beforeAll(() => {
  store = openStore({ ...defaultSettings, path: ":memory:" });
  const ann = openTill(store, "ann", 10_000_000_000n);
  const bob = openTill(store, "bob", 10_000_000_000n);
  ann.admit("req_a1", {}, at("2026-03-01T10:59:59Z"));
  ann.settle("req_a1", [100, 20], at("2026-03-01T11:00:00Z"));
  ann.admit("req_a2", {}, at("2026-03-01T11:10:00Z"));
  ann.settle("req_a2", [7, 1], at("2026-03-01T11:59:59.999Z"));
  ann.admit("req_a3", {}, at("2026-03-02T00:00:00Z"));
  bob.admit("req_b1", {}, at("2026-03-02T00:00:00Z"));
  run(store, "expire", null, at("2026-03-02T00:02:00Z"));
  ann.admit("req_a4", {}, at("2026-03-02T01:00:00Z"));
});
afterAll(() => store[Symbol.dispose]());

const everything: UsageQuery = { accountId: null, sinceMs: null, untilMs: null, by: "day" };

describe("usage", () => {
  const requests = (query: Partial<UsageQuery>): number =>
    run(store, "usage", { ...everything, ...query }).reduce((sum, row) => sum + row.requests, 0);

  test.each([
    [null, null, 4],
    ["2026-03-01T11:00:00Z", null, 4],
    ["2026-03-01T11:00:00.001Z", null, 3],
    [null, "2026-03-01T11:00:00Z", 0],
    [null, "2026-03-01T11:59:59.999Z", 1],
    [null, "2026-03-01T12:00:00Z", 2],
    ["2026-03-01T11:30:00Z", "2026-03-02T00:02:00Z", 1],
    ["2026-03-03T00:00:00Z", null, 0],
  ])("from %s on and before %s: %s requests", (since, until, count) => {
    const query = {
      sinceMs: since === null ? null : at(since),
      untilMs: until === null ? null : at(until),
    };
    expect(requests(query)).toBe(count);
  });

  test("is of those that have ended, the expired ones at no charge, and of one account when told", () => {
    expect(run(store, "usage", { ...everything, accountId: "acct_ann" })).toEqual([
      {
        accountId: "acct_ann",
        group: "2026-03-01",
        requests: 2,
        inputTokens: 107,
        cachedInputTokens: 0,
        outputTokens: 21,
        reasoningTokens: 0,
        chargedNanos: 191_000n,
      },
      {
        accountId: "acct_ann",
        group: "2026-03-02",
        requests: 1,
        inputTokens: 0,
        cachedInputTokens: 0,
        outputTokens: 0,
        reasoningTokens: 0,
        chargedNanos: 0n,
      },
    ]);
    expect(requests({ accountId: "acct_nobody" })).toBe(0);
  });

  test.each([
    ["hour", ["2026-03-01T11:00:00Z", "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z"]],
    ["day", ["2026-03-01", "2026-03-02", "2026-03-02"]],
    ["key", ["key_ann", "key_bob"]],
    ["format", ["messages", "messages"]],
  ] as const)("by %s", (by, groups) => {
    expect(run(store, "usage", { ...everything, by }).map(({ group }) => group)).toEqual(groups);
  });
});

describe("sums of usage", () => {
  test("of figures that no 64 bits can hold together are made all the same", () => {
    using full = openStore({ ...defaultSettings, path: ":memory:" });
    const till = openTill(full, "ann", 10_000_000_000n);
    for (let request = 0; request < 1_100; request += 1) {
      const id = `req_${String(request)}` as const;
      till.admit(id, { caller: till.authorize(0, false) });
      till.settle(id, [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
    }
    expect(run(full, "usage", everything)).toMatchObject([
      {
        requests: 1_100,
        inputTokens: Number.MAX_SAFE_INTEGER * 1_100,
        outputTokens: Number.MAX_SAFE_INTEGER * 1_100,
        chargedNanos: 1_100n * 1_400_000n,
      },
    ]);
  });

  test.each([
    ["of one account", "acct_ann", null, /SEARCH reservation .*account_id=\?/],
    [
      "since a time",
      null,
      5,
      /SEARCH reservation .*reservation_resolved.*account_id=\? AND resolved_at_ms>\?/,
    ],
    [
      "of one account since a time",
      "acct_ann",
      5,
      /reservation_resolved.*account_id=\? AND resolved_at_ms>\?/,
    ],
  ])("%s are read by an index", (_name, accountId, sinceMs, plan) => {
    using database = openDatabase({ path: ":memory:", synchronous: "normal" });
    const { text, values } = usageStatement({ ...everything, accountId, sinceMs });
    const steps = database.prepare(`explain query plan ${text}`).all(...values);
    expect(steps.map(({ detail }) => String(detail)).join("\n")).toMatch(plan);
  });
});

describe("a receipt", () => {
  test("is only of the account that asks", () => {
    const order = { requestId: "req_a1", accountId: "acct_bob" } as const;
    expect(run(store, "receipt", order)).toBeNull();
    expect(run(store, "receipt", { ...order, accountId: "acct_ann" })?.requestId).toBe("req_a1");
    expect(run(store, "receipt", { ...order, accountId: null })?.requestId).toBe("req_a1");
    expect(run(store, "receipt", { requestId: "", accountId: null })).toBeNull();
  });

  test("of an expired request says so, and why", () => {
    const receipt = run(store, "receipt", { requestId: "req_a3", accountId: null });
    if (receipt === null) throw new Error("no receipt");
    expect(receiptToJson(receipt)).toMatchObject({
      state: "expired",
      outcome: "lease-lost",
      charged: "0",
      usage: null,
      resolved_at: "2026-03-02T00:02:00.000Z",
      total_ms: null,
    });
  });
});

describe("an account as its callers see it", () => {
  test("has what runs, oldest first, and its newest head", () => {
    const seen = run(store, "callerAccount", { accountId: "acct_ann", keyId: "key_ann" });
    expect(seen.running.map(({ requestId }) => requestId)).toEqual(["req_a4"]);
    expect(seen).toMatchObject({
      account: { id: "acct_ann", heldNanos: 1_400_000n },
      limits: { concurrentRequests: 4, requestsPerMinute: 600, outputTokensMax: 65_536 },
      prices: defaultSettings.prices,
      head: { accountId: "acct_ann", sequence: 8 },
    });
    run(store, "createAccount", { id: "acct_new", name: "new", creditNanos: 0n });
    const key = {
      id: "key_new",
      accountId: "acct_new",
      name: "new",
      secretHash: secretHash("new"),
    } as const;
    run(store, "createKey", key);
    expect(run(store, "callerAccount", { accountId: "acct_new", keyId: "key_new" })).toMatchObject({
      head: null,
      running: [],
      budget: null,
    });
  });
});
