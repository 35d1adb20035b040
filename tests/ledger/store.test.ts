import { describe, expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import type { ArgumentOf } from "../../src/ledger/store-operations.ts";
import type { SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, failureOf, openTill, refusal, run, secretHash } from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

const credit = 1_000_000_000n;

function open(settings: Partial<typeof defaultSettings> = {}): SqliteStore {
  return openNewStore({ ...defaultSettings, ...settings });
}

describe("authorize", () => {
  test("tells a caller by the right key alone", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    openTill(store, "b", credit);
    expect(till.authorize()).toMatchObject({ accountId: "acct_a", keyId: "key_a" });
    const order = { secretHash: secretHash("a"), ticketId: "t", needsCredit: false };
    for (const wrong of [
      { ...order, accountId: "acct_a", keyId: "key_a", secretHash: secretHash("x") },
      { ...order, accountId: "acct_a", keyId: "key_a", secretHash: new Uint8Array(32) },
      { ...order, accountId: "acct_a", keyId: "key_none" },
      { ...order, accountId: "acct_none", keyId: "key_a" },
      { ...order, accountId: "acct_b", keyId: "key_a" },
      { ...order, accountId: "acct_none", keyId: "key_none", secretHash: new Uint8Array(32) },
    ] as const) {
      const failure = failureOf(() => run(store, "authorize", wrong));
      expect([failure.code, failure.message]).toEqual([
        "authentication",
        failureOf(() => run(store, "authorize", { ...wrong, keyId: "key_other" })).message,
      ]);
    }
  });

  test("a revocation and a disabled account hold from the next request on", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    const caller = till.authorize();
    run(store, "setAccountStatus", { id: "acct_a", status: "disabled" });
    expect(refusal(() => till.authorize())).toBe("account_disabled");
    // Also for who was let in before.
    expect(refusal(() => till.admit("req_1", { caller }))).toBe("account_disabled");
    run(store, "setAccountStatus", { id: "acct_a", status: "active" });
    expect(refusal(() => till.admit("req_1", { caller }))).toBe("done");
    run(store, "revokeKey", { id: "key_a" });
    expect(refusal(() => till.authorize())).toBe("authentication");
    expect(refusal(() => till.admit("req_2", { caller }))).toBe("authentication");
    // The refusal of a wrong key does not say that the key was revoked.
    const wrong = { accountId: "acct_a", keyId: "key_a", secretHash: secretHash("x") } as const;
    expect(
      failureOf(() => run(store, "authorize", { ...wrong, ticketId: null, needsCredit: false }))
        .message,
    ).not.toContain("revoked");
  });
});

describe("authorize where credit is needed", () => {
  const asked = {
    accountId: "acct_a",
    keyId: "key_a",
    secretHash: secretHash("a"),
    ticketId: "t",
    needsCredit: true,
  } as const;

  test("wants a balance for 64 tokens of input and one of output, to the nano", () => {
    const prices = { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n };
    using store = open({ prices });
    const till = openTill(store, "a", 68_000n);
    expect(refusal(() => run(store, "authorize", asked))).toBe("done");
    run(store, "creditAccount", { id: "acct_a", amountNanos: -1n, note: null });
    const failure = failureOf(() => run(store, "authorize", { ...asked, ticketId: "u" }));
    expect(failure.code).toBe("insufficient_credit");
    expect(failure.facts.shortage).toEqual({
      balance: "0.000067999",
      held: "0",
      needed: "0.000068",
      affordableOutputTokens: 0,
      waitingHelps: false,
    });
    // Refused, it counts all the same; what needs no credit is not refused.
    expect(till.authorize().rate.remaining).toBe(defaultSettings.requestsPerMinute - 3);
  });

  test("leaves what is held to the admission, whose refusal says that waiting helps", () => {
    using store = open();
    const till = openTill(store, "a", 1_400_000n);
    till.admit("req_1");
    expect(refusal(() => run(store, "authorize", asked))).toBe("done");
  });

  test("refuses nobody where the smallest request is free", () => {
    using store = open({ prices: { inputNanosPerMillion: 0n, outputNanosPerMillion: 0n } });
    openTill(store, "a", 0n);
    expect(refusal(() => run(store, "authorize", asked))).toBe("done");
  });

  test("comes after the rate, and a revoked key hears nothing of credit", () => {
    using store = open({ requestsPerMinute: 1 });
    openTill(store, "a", 0n);
    expect(refusal(() => run(store, "authorize", asked))).toBe("insufficient_credit");
    expect(refusal(() => run(store, "authorize", { ...asked, ticketId: "u" }))).toBe(
      "rate_limited",
    );
    run(store, "revokeKey", { id: "key_a" });
    expect(refusal(() => run(store, "authorize", asked))).toBe("authentication");
  });
});

test("a ticket that is given back counts no more, also when it is given back twice", () => {
  using store = open({ requestsPerMinute: 2 });
  const till = openTill(store, "a", credit);
  const caller = till.authorize();
  till.authorize();
  run(store, "giveTicketBack", caller);
  run(store, "giveTicketBack", caller);
  run(store, "giveTicketBack", { ...caller, ticket: null });
  expect(till.authorize().rate.remaining).toBe(0);
});

describe("admit", () => {
  test("reserves the bound and the allowance", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    expect(till.admit("req_1", { inputBound: 1_000, requested: 100 })).toEqual({
      allowance: 100,
      reservedNanos: 1_400_000n,
    });
    expect(till.show()).toMatchObject({ balanceNanos: credit, heldNanos: 1_400_000n });
  });

  test("an omitted allowance is what is left to pay for, and then nothing is", () => {
    using store = open();
    const till = openTill(store, "a", 1_008_000n);
    expect(till.admit("req_1", { requested: null }).allowance).toBe(2);
    const failure = failureOf(() => till.admit("req_2", { requested: null }));
    expect(failure.code).toBe("insufficient_credit");
    expect(failure.facts.shortage).toEqual({
      balance: "0.001008",
      held: "0.001008",
      needed: "0.001004",
      affordableOutputTokens: 0,
      waitingHelps: true,
    });
  });

  test("a refusal for credit says what to do", () => {
    using store = open();
    const till = openTill(store, "a", 1_100_000n);
    const failure = failureOf(() => till.admit("req_1", { requested: 50 }));
    expect(failure.message).toBe(
      "This request needs 0.0012 credits reserved for its input (counted as at most 1000 tokens) and the output allowance it asks for. The balance is 0.0011, of which running requests hold 0. Add credit, reduce the output allowance to at most 25 tokens, or shorten the conversation.",
    );
    expect(failure.facts.shortage).toMatchObject({
      needed: "0.0012",
      affordableOutputTokens: 25,
      waitingHelps: false,
    });
    expect(till.show().heldNanos).toBe(0n);
    expect(till.settle("req_1", [1, 1])).toEqual({ chargedNanos: 0n, applied: false });
  });

  test("the fifth at once is refused, gets its ticket back, and fits when one has ended", () => {
    using store = open({ requestsPerMinute: 6 });
    const till = openTill(store, "a", credit);
    for (const n of [1, 2, 3, 4] as const) till.admit(`req_${String(n)}`);
    for (const n of [5, 6, 7, 8, 9] as const) {
      const failure = failureOf(() => till.admit(`req_${String(n)}`));
      expect(failure.code).toBe("too_many_concurrent");
      expect(failure.facts.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    }
    expect(till.authorize().rate.remaining).toBe(1);
    till.settle("req_2", null);
    expect(refusal(() => till.admit("req_10"))).toBe("done");
  });

  test("a refusal for credit keeps its ticket", () => {
    using store = open({ requestsPerMinute: 2 });
    const till = openTill(store, "a", 1n);
    expect(refusal(() => till.admit("req_1"))).toBe("insufficient_credit");
    expect(till.authorize().rate.remaining).toBe(0);
  });

  test("two keys of one account share slots and balance", () => {
    using store = open({ concurrencyPerAccount: 1 });
    const till = openTill(store, "a", 1_400_000n);
    run(store, "createKey", {
      id: "key_second",
      accountId: "acct_a",
      name: "second",
      secretHash: secretHash("second"),
    });
    const second = (): ReturnType<typeof till.authorize> =>
      run(store, "authorize", {
        accountId: "acct_a",
        keyId: "key_second",
        secretHash: secretHash("second"),
        ticketId: "s",
        needsCredit: false,
      });
    till.admit("req_1");
    expect(refusal(() => till.admit("req_2", { caller: second() }))).toBe("too_many_concurrent");
    till.settle("req_1", [1_000, 100]);
    expect(refusal(() => till.admit("req_2", { caller: second() }))).toBe("insufficient_credit");
  });

  test("asked twice it reserves once and answers the same; asked after its end it is refused", () => {
    using store = open({ concurrencyPerAccount: 1 });
    const till = openTill(store, "a", credit);
    const first = till.admit("req_1");
    expect(till.admit("req_1")).toEqual(first);
    expect(till.show().heldNanos).toBe(first.reservedNanos);
    till.settle("req_1", null);
    expect(refusal(() => till.admit("req_1"))).toBe("overloaded");
    expect(till.show().heldNanos).toBe(0n);
  });

  test("a request of another account is a fault, not an answer", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    const other = openTill(store, "b", credit);
    till.admit("req_1");
    expect(refusal(() => other.admit("req_1"))).toBe("fault");
    expect(refusal(() => other.settle("req_1", [1, 1]))).toBe("fault");
  });
});

describe("settle", () => {
  test("charges the usage, gives back the rest, and does so once", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    till.admit("req_1");
    expect(till.settle("req_1", [500, 20])).toEqual({ chargedNanos: 580_000n, applied: true });
    expect(till.show()).toMatchObject({ balanceNanos: credit - 580_000n, heldNanos: 0n });
    expect(till.settle("req_1", [900, 90])).toEqual({ chargedNanos: 580_000n, applied: false });
    expect(till.show().balanceNanos).toBe(credit - 580_000n);
  });

  test("never charges more than was reserved", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    till.admit("req_1");
    expect(till.settle("req_1", [90_000, 90_000]).chargedNanos).toBe(1_400_000n);
  });

  test("charges at the prices of its admission", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    till.admit("req_1");
    expect(till.settle("req_1", [1, 1]).chargedNanos).toBe(5_000n);
  });

  test("without usage charges nothing", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    till.admit("req_1");
    expect(till.settle("req_1", null)).toEqual({ chargedNanos: 0n, applied: true });
    expect(till.show()).toMatchObject({ balanceNanos: credit, heldNanos: 0n });
  });
});

describe("leases", () => {
  test("what is not renewed is given back when its lease ends, and charges nothing afterwards", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    till.admit("req_1", {}, 0);
    till.admit("req_2", {}, 0);
    expect(run(store, "renew", ["req_1", "req_none"], 40_000)).toEqual(["req_1"]);
    expect(run(store, "expire", null, 59_999)).toBe(0);
    expect(run(store, "expire", null, 60_000)).toBe(1);
    expect(till.show().heldNanos).toBe(1_400_000n);
    expect(till.settle("req_2", [500, 20], 60_001)).toEqual({ chargedNanos: 0n, applied: false });
    expect(run(store, "renew", ["req_1", "req_2"], 60_002)).toEqual(["req_1"]);
    expect(run(store, "expire", null, 120_001)).toBe(0);
    expect(run(store, "expire", null, 120_002)).toBe(1);
    expect(till.show()).toMatchObject({ balanceNanos: credit, heldNanos: 0n });
  });

  test("what has been settled is not renewed", () => {
    using store = open();
    const till = openTill(store, "a", credit);
    till.admit("req_1");
    till.settle("req_1", null);
    expect(run(store, "renew", ["req_1"], 1)).toEqual([]);
  });

  test("slots of the dead are free again", () => {
    using store = open({ concurrencyPerAccount: 1 });
    const till = openTill(store, "a", credit);
    till.admit("req_1", {}, 0);
    expect(refusal(() => till.admit("req_2", {}, 60_000))).toBe("too_many_concurrent");
    run(store, "expire", null, 60_000);
    expect(refusal(() => till.admit("req_2", {}, 60_000))).toBe("done");
  });
});

describe("a group", () => {
  test("is answered call by call: a refusal and a fault leave the others as they are", () => {
    using store = open({ concurrencyPerAccount: 2 });
    const till = openTill(store, "a", credit);
    const callers = [1, 2, 3, 4].map(() => till.authorize());
    const admit = (requestId: `req_${string}`, at: number, inputBound: number) => ({
      name: "admit" as const,
      argument: {
        requestId,
        caller: callers[at] ?? till.authorize(),
        inputBound,
        outputTokensRequested: 10,
        outputTokensFitting: null,
        format: "responses",
        streamed: false,
        label: null,
      },
      nowMs: 0,
    });
    const answers = store.execute([
      admit("req_1", 0, 100),
      // Not a number of tokens: no price can be put on it.
      admit("req_2", 1, Number.NaN),
      admit("req_3", 2, 100),
      admit("req_4", 3, 100),
    ]);
    expect(answers.map((answer) => (answer.ok ? "done" : answer.error instanceof Failure))).toEqual(
      ["done", false, "done", true],
    );
    expect(till.show().heldNanos).toBe(280_000n);
  });
});

function firstAccount(name: string): ArgumentOf<"createFirstAccount"> {
  return {
    account: { id: `acct_${name}`, name: "first", creditNanos: 10n },
    key: {
      id: `key_${name}`,
      accountId: `acct_${name}`,
      name: "",
      secretHash: secretHash(name),
    },
  };
}

describe("administration", () => {
  test("takes back at most what is not held", () => {
    using store = open();
    const till = openTill(store, "a", 2_000_000n);
    till.admit("req_1");
    const take = (amountNanos: bigint) =>
      run(store, "creditAccount", { id: "acct_a", amountNanos, note: "back" });
    expect(() => take(-600_001n)).toThrow(
      "At most 0.0006 can be taken back from acct_a: its balance is 0.002, of which running requests hold 0.0014.",
    );
    expect(take(-600_000n)).toMatchObject({
      entry: { balanceDeltaNanos: -600_000n },
      account: { balanceNanos: 1_400_000n, heldNanos: 1_400_000n },
    });
    expect(till.settle("req_1", [1_000, 100]).chargedNanos).toBe(1_400_000n);
    expect(till.show().balanceNanos).toBe(0n);
  });

  test("refuses what makes no sense, and says what does", () => {
    using store = open();
    openTill(store, "a", 0n);
    const add = (amountNanos: bigint, note: string | null = null) =>
      refusal(() => run(store, "creditAccount", { id: "acct_a", amountNanos, note }));
    expect(add(0n)).toBe("invalid_value");
    expect(add(10n ** 18n + 1n)).toBe("invalid_value");
    expect(add(10n ** 40n)).toBe("invalid_value");
    expect(add(1n, "x".repeat(501))).toBe("invalid_value");
    expect(add(10n ** 18n)).toBe("done");
    expect(add(1n)).toBe("invalid_value");
    const create = (name: string, creditNanos = 0n) =>
      refusal(() => run(store, "createAccount", { id: "acct_n", name, creditNanos }));
    expect(create(" ")).toBe("invalid_value");
    expect(create("a\nb")).toBe("invalid_value");
    expect(create("x".repeat(101))).toBe("invalid_value");
    expect(create("fine", -1n)).toBe("invalid_value");
    expect(create("Ünïcode näme", 5n)).toBe("done");
    expect(refusal(() => run(store, "showAccount", "acct_none"))).toBe("not_found");
    expect(refusal(() => run(store, "listKeys", "acct_none"))).toBe("not_found");
    expect(refusal(() => run(store, "revokeKey", { id: "key_none" }))).toBe("not_found");
    expect(
      refusal(() => run(store, "setAccountStatus", { id: "acct_none", status: "active" })),
    ).toBe("not_found");
  });

  test("lists accounts and keys in the order in which they were made", () => {
    using store = open();
    for (const [at, name] of ["c", "a", "b"].entries())
      run(store, "createAccount", { id: `acct_${name}`, name, creditNanos: 0n }, at);
    for (const [at, name] of ["z", "y"].entries())
      run(
        store,
        "createKey",
        { id: `key_${name}`, accountId: "acct_a", name, secretHash: secretHash(name) },
        at,
      );
    expect(run(store, "listAccounts", null).map(({ name }) => name)).toEqual(["c", "a", "b"]);
    run(store, "revokeKey", { id: "key_z" }, 7);
    run(store, "revokeKey", { id: "key_z" }, 9);
    expect(run(store, "listKeys", "acct_a")).toMatchObject([
      { id: "key_z", accountId: "acct_a", name: "z", createdAtMs: 0, revokedAtMs: 7, version: 2 },
      {
        id: "key_y",
        accountId: "acct_a",
        name: "y",
        createdAtMs: 1,
        revokedAtMs: null,
        version: 1,
      },
    ]);
  });

  test("the first account is made once, whole or not at all", () => {
    using store = open();
    // The key's name is refused after the account has been written.
    expect(refusal(() => run(store, "createFirstAccount", firstAccount("a")))).toBe(
      "invalid_value",
    );
    expect(run(store, "listAccounts", null)).toEqual([]);
    const whole = { ...firstAccount("b"), key: { ...firstAccount("b").key, name: "first" } };
    expect(run(store, "createFirstAccount", whole)?.account.balanceNanos).toBe(10n);
    expect(run(store, "createFirstAccount", firstAccount("c"))).toBeNull();
  });

  test("the key that seals is made once", () => {
    using store = open();
    const first = { id: "one", secret: new Uint8Array(32).fill(1) };
    const second = { id: "two", secret: new Uint8Array(32).fill(2) };
    expect(run(store, "sealKeys", first, 5)).toEqual([{ ...first, ageMs: 0 }]);
    expect(run(store, "sealKeys", second, 7)).toEqual([{ ...first, ageMs: 2 }]);
    expect(run(store, "addSealKey", second, 9)).toEqual({ ...second, ageMs: 0 });
    expect(run(store, "sealKeys", first, 10)).toEqual([
      { ...first, ageMs: 5 },
      { ...second, ageMs: 1 },
    ]);
  });
});
