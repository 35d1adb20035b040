import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { receiptToJson } from "../../src/ledger/receipt.ts";
import type { SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, openTill, run, secretHash } from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

const at = (text: string): number => Date.parse(text);
let store: SqliteStore;

beforeAll(() => {
  store = openNewStore();
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
