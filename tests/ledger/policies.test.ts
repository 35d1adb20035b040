import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import type { KeyPatch } from "../../src/ledger/administration/key-administration.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { postgresTests } from "./postgres-server.ts";
import { codeOf, defaultSettings, temporaryLedger } from "./support.ts";

// What a key and an account may do, in both stores: scopes, expiry, pause, limits, and secrets that are replaced.

/** Two processes on one ledger, whose clock a test moves on. */
interface Pair extends AsyncDisposable {
  readonly ledger: StoreLedger;
  readonly other: StoreLedger;
  readonly clock: { nowMs: number };
}

/** An account with a key, of one test. */
interface Stage extends Omit<Pair, typeof Symbol.asyncDispose> {
  readonly accountId: string;
  readonly keyId: string;
  readonly secret: string;
  readonly startMs: number;
}

const settings = { ...defaultSettings, concurrencyPerAccount: 2, requestsPerMinute: 4 };
let requests = 0;

async function openPair(store: "SQLite" | "PostgreSQL"): Promise<Pair> {
  const clock = { nowMs: 1_000_000 };
  await using opened = new AsyncDisposableStack();
  const now = (): number => clock.nowMs;
  let open: () => Promise<StoreLedger>;
  if (store === "SQLite") {
    const { path } = opened.use(temporaryLedger());
    open = () => openSqliteLedger({ ...settings, path }, { now });
  } else {
    const server = opened.use(await openPostgresDatabases());
    const url = await server.createDatabase("policies");
    open = () => openPostgresLedger({ ...settings, url, connections: 2 }, { now });
  }
  const ledger = opened.use(await open());
  const other = opened.use(await open());
  const kept = opened.move();
  return { ledger, other, clock, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function openStage(pair: Pair | null): Promise<Stage> {
  if (pair === null) throw new Error("no ledger is open");
  const { id: accountId } = await pair.ledger.createAccount("team", 10n ** 12n);
  const { record, secret } = await pair.ledger.createKey(accountId, "web");
  return { ...pair, accountId, secret, keyId: record.id, startMs: pair.clock.nowMs };
}

function outcome(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

/** What a generation, a count of tokens and a look with this secret come to. */
async function outcomes(ledger: StoreLedger, secret: string): Promise<readonly string[]> {
  return [
    await outcome(ledger.authorize(secret, true, true)),
    await outcome(ledger.authorize(secret, true)),
    await outcome(ledger.authorize(secret, false)),
  ];
}

/** Changes the stage's key; `leftMs`: from now until it expires. */
async function change(
  { clock, keyId, ledger }: Stage,
  { leftMs, ...patch }: KeyPatch & { readonly leftMs?: number },
): Promise<void> {
  const expiry = leftMs === undefined ? {} : { expiresAtMs: clock.nowMs + leftMs };
  await ledger.changeKey(keyId, { ...patch, ...expiry });
}

/** Admits a request, and answers its allowance. */
async function admit(
  { other }: Stage,
  secret: string,
  asked: number | null = 100,
): Promise<number> {
  const caller = await other.authorize(secret, true, true);
  requests += 1;
  const order = {
    requestId: `req_policy${String(requests)}`,
    outputTokensRequested: asked,
  } as const;
  return (await other.admit(orderOf(caller, order))).allowance;
}

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
] as const)("$name", ({ name, runs }) => {
  describe.runIf(runs)("policies", () => {
    let pair: Pair | null = null;
    beforeAll(async () => (pair = await openPair(name)));
    afterAll(() => pair?.[Symbol.asyncDispose]());

    test.each<readonly [string, KeyPatch & { readonly leftMs?: number }, readonly string[]]>([
      ["a new key", {}, ["done", "done", "done"]],
      ["a paused one", { status: "paused" }, ["key_paused", "key_paused", "key_paused"]],
      ["an expired one", { leftMs: 0 }, ["key_expired", "key_expired", "key_expired"]],
      ["one that expires", { leftMs: 1 }, ["done", "done", "done"]],
      ["one that may look", { scopes: ["read"] }, ["key_scope", "done", "done"]],
      ["one that may spend", { scopes: ["generate"] }, ["done", "done", "key_scope"]],
      [
        "one that expired and is paused",
        { status: "paused", leftMs: 0 },
        ["key_expired", "key_expired", "key_expired"],
      ],
    ])("%s: to generate, to count tokens and to look", async (_name, patch, expected) => {
      const stage = await openStage(pair);
      await change(stage, patch);
      expect(await outcomes(stage.other, stage.secret)).toEqual(expected);
      // What was refused has not counted.
      await stage.ledger.changeKey(stage.keyId, {
        status: "active",
        expiresAtMs: null,
        scopes: ["generate", "read"],
      });
      const { rate } = await stage.other.authorize(stage.secret, false);
      expect(rate.remaining).toBe(4 - expected.slice(0, 2).filter((one) => one === "done").length);
    });

    test.each<readonly [string, KeyPatch & { readonly leftMs?: number }]>([
      ["key_paused", { status: "paused" }],
      ["key_expired", { leftMs: 0 }],
      ["key_scope", { scopes: ["read"] }],
    ])("what becomes %s between its two looks is not admitted", async (code, patch) => {
      const stage = await openStage(pair);
      const { ledger, other, secret } = stage;
      const caller = await other.authorize(secret, true, true);
      await change(stage, patch);
      expect(await outcome(other.admit(orderOf(caller)))).toBe(code);
      expect((await ledger.showAccount(stage.accountId)).heldNanos).toBe(0n);
    });

    test("an expiry is by the clock of the moment", async () => {
      const stage = await openStage(pair);
      await stage.ledger.changeKey(stage.keyId, { expiresAtMs: stage.startMs + 5_000 });
      const caller = await stage.other.authorize(stage.secret, true, true);
      stage.clock.nowMs += 4_999;
      expect(await outcome(stage.other.authorize(stage.secret, true))).toBe("done");
      stage.clock.nowMs += 1;
      expect(await outcome(stage.other.authorize(stage.secret, true))).toBe("key_expired");
      expect(await outcome(stage.other.admit(orderOf(caller)))).toBe("key_expired");
    });

    test.each([
      { of: "neither", account: null, key: null, limit: 4 },
      { of: "the account, above the service", account: 9, key: null, limit: 9 },
      { of: "the account, below it", account: 2, key: null, limit: 2 },
      { of: "the key, below its account", account: 9, key: 3, limit: 3 },
      { of: "the key, which does not loosen the account's", account: 2, key: 9, limit: 2 },
      { of: "the key, which does not loosen the service's", account: null, key: 9, limit: 4 },
    ])("requests a minute by a limit of $of", async ({ account, key, limit }) => {
      const stage = await openStage(pair);
      const { accountId, keyId, ledger, other, secret } = stage;
      await ledger.changeAccount(accountId, { limits: { requestsPerMinute: account } });
      await ledger.changeKey(keyId, { limits: { requestsPerMinute: key } });
      for (let count = 1; count <= limit; count += 1) {
        const { rate } = await other.authorize(secret, true);
        expect(rate).toMatchObject({ limit, remaining: limit - count });
      }
      const refused: unknown = await other.authorize(secret, true).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(Failure);
      expect(refused).toMatchObject({
        code: "rate_limited",
        facts: { rate: { limit, remaining: 0 } },
        message: expect.stringContaining(`${String(limit)} requests in any 60 seconds`) as string,
      });
      expect((await other.showCaller(callerOf(stage))).limits.requestsPerMinute).toBe(limit);
      // One more fits from the next request on.
      await ledger.changeAccount(accountId, { limits: { requestsPerMinute: limit + 1 } });
      await ledger.changeKey(keyId, { limits: { requestsPerMinute: null } });
      expect(await outcome(other.authorize(secret, true))).toBe("done");
      expect(await outcome(other.authorize(secret, true))).toBe("rate_limited");
    });

    test.each([
      { limit: null, slots: 2 },
      { limit: 1, slots: 1 },
      { limit: 3, slots: 3 },
    ])("an account with a limit of $limit runs $slots at once", async ({ limit, slots }) => {
      const stage = await openStage(pair);
      const { accountId, ledger, other } = stage;
      await ledger.changeAccount(accountId, {
        limits: { concurrentRequests: limit, requestsPerMinute: 100 },
      });
      expect((await other.authorize(stage.secret, true)).concurrentRequests).toBe(slots);
      for (let count = 0; count < slots; count += 1) await admit(stage, stage.secret);
      const refused: unknown = await admit(stage, stage.secret).catch((error: unknown) => error);
      expect(refused).toMatchObject({
        code: "too_many_concurrent",
        message: expect.stringContaining(`runs ${String(slots)} requests already`) as string,
      });
      expect((await other.showCaller(callerOf(stage))).limits.concurrentRequests).toBe(slots);
      await ledger.changeAccount(accountId, { limits: { concurrentRequests: slots + 1 } });
      await admit(stage, stage.secret);
      // A smaller limit ends nothing that runs, and admits nothing until it fits again.
      await ledger.changeAccount(accountId, { limits: { concurrentRequests: 1 } });
      expect((await ledger.showAccount(accountId)).running).toBe(slots + 1);
      expect(await outcome(admit(stage, stage.secret))).toBe("too_many_concurrent");
    });

    test.each([
      { account: null, key: null, asked: 70_000, allowance: 65_536 },
      { account: null, key: null, asked: null, allowance: 32_768 },
      { account: 50, key: null, asked: 70_000, allowance: 50 },
      { account: 50, key: null, asked: null, allowance: 50 },
      { account: 50, key: 20, asked: 40, allowance: 20 },
      { account: 20, key: 50, asked: 40, allowance: 20 },
      { account: 40_000, key: null, asked: null, allowance: 32_768 },
      { account: null, key: 1, asked: null, allowance: 1 },
      { account: 50, key: null, asked: 49, allowance: 49 },
    ])(
      "at most $account tokens of the account and $key of the key: of $asked come $allowance",
      async ({ account, allowance, asked, key }) => {
        const stage = await openStage(pair);
        const { accountId, keyId, ledger } = stage;
        await ledger.changeAccount(accountId, { limits: { outputTokensMax: account } });
        await ledger.changeKey(keyId, { limits: { outputTokensMax: key } });
        expect(await admit(stage, stage.secret, asked)).toBe(allowance);
        const { limits } = await stage.other.showCaller(callerOf(stage));
        expect(limits.outputTokensMax).toBe(Math.min(65_536, account ?? 65_536, key ?? 65_536));
      },
    );

    // A request reserves 1,400,000 nanos.
    test.each([
      { credit: 1_400_000n, budget: 1_400_000n, code: "done" },
      { credit: 1_399_999n, budget: 1_399_999n, code: "insufficient_credit" },
      { credit: 1_399_999n, budget: 1_399_998n, code: "budget_exceeded" },
      { credit: 1_399_998n, budget: 1_399_999n, code: "insufficient_credit" },
      { credit: 1_400_000n, budget: 1_399_999n, code: "budget_exceeded" },
    ])(
      "with $credit nanos of credit and a budget of $budget a request is $code",
      async ({ budget: amountNanos, code, credit }) => {
        const stage = await openStage(pair);
        const { accountId, keyId, ledger, secret } = stage;
        await ledger.creditAccount(accountId, credit - 10n ** 12n, null);
        await ledger.changeKey(keyId, { budget: { amountNanos, period: "total" } });
        expect(await outcome(admit(stage, secret))).toBe(code);
      },
    );

    test("a budget of a day begins anew with the first millisecond of the next one", async () => {
      const stage = await openStage(pair);
      const { accountId, clock, keyId, ledger, other, secret } = stage;
      await ledger.changeAccount(accountId, { limits: { concurrentRequests: 8 } });
      await ledger.changeKey(keyId, { budget: { amountNanos: 1_400_000n, period: "day" } });
      const caller = await other.authorize(secret, true, true);
      const first = orderOf(caller, { requestId: "req_before_midnight" });
      await other.admit(first);
      clock.nowMs += 86_399_999 - (clock.nowMs % 86_400_000);
      expect(await outcome(admit(stage, secret))).toBe("budget_exceeded");
      clock.nowMs += 1;
      expect(await admit(stage, secret)).toBe(100);
      expect(await outcome(admit(stage, secret))).toBe("budget_exceeded");
      // What was admitted the day before counts in none any more.
      await other.settle(settlementOf(first));
      const budget = (await ledger.findKey(keyId))?.budget;
      expect(budget).toMatchObject({ spentNanos: 0n, heldNanos: 1_400_000n });
    });

    test("a refusal for credit names no more tokens than the key may have", async () => {
      const stage = await openStage(pair);
      const { accountId, keyId, ledger, other, secret } = stage;
      // 1,000 tokens of input cost 1,000,000 nanos and each of output 4,000: 70 tokens are paid for.
      await ledger.creditAccount(accountId, 1_280_000n - 10n ** 12n, null);
      const caller = await other.authorize(secret, true, true);
      const affordable = async (): Promise<unknown> => {
        const order = { requestId: "req_short", outputTokensRequested: 1_000 } as const;
        const error: unknown = await other
          .admit(orderOf(caller, order))
          .catch((one: unknown) => one);
        return error instanceof Failure && error.facts.shortage?.affordableOutputTokens;
      };
      expect(await affordable()).toBe(70);
      await ledger.changeKey(keyId, { limits: { outputTokensMax: 500 } });
      expect(await affordable()).toBe(70);
      await ledger.changeKey(keyId, { limits: { outputTokensMax: 60 } });
      expect(await admit(stage, secret, 1_000)).toBe(60);
    });

    test("a rotated key has two secrets until the overlap is over, and its receipts go on", async () => {
      const stage = await openStage(pair);
      const { keyId, ledger, other, secret: first } = stage;
      const caller = await other.authorize(first, true, true);
      await other.admit(orderOf(caller, { requestId: "req_before" }));
      const { record, secret: second } = await ledger.rotateKey(keyId, 60_000);
      expect(record).toMatchObject({ id: keyId, previousUntilMs: stage.startMs + 60_000 });
      expect(await ledger.findKey(keyId)).toEqual(record);
      expect(await outcome(other.authorize(first, false))).toBe("done");
      expect(await outcome(other.authorize(second, false))).toBe("done");
      // Both are one key, with one window.
      expect((await other.authorize(second, true)).rate.remaining).toBe(2);
      expect((await other.authorize(first, true)).rate.remaining).toBe(1);
      await other.settle(settlementOf(orderOf(caller, { requestId: "req_before" }), [1, 1]));
      expect((await ledger.showReceipt("req_before")).keyId).toBe(keyId);
      stage.clock.nowMs += 59_999;
      expect(await outcome(other.authorize(first, false))).toBe("done");
      stage.clock.nowMs += 1;
      const refused: unknown = await other.authorize(first, false).catch((error: unknown) => error);
      expect(refused).toMatchObject({
        code: "authentication",
        message: expect.stringContaining("replaced by a new one") as string,
      });
      expect(await outcome(other.authorize(second, false))).toBe("done");
    });

    test("of two old secrets only the newest lives, and without an overlap none", async () => {
      const stage = await openStage(pair);
      const { keyId, ledger, other, secret: first } = stage;
      const { secret: second } = await ledger.rotateKey(keyId, 3_600_000);
      const { secret: third } = await ledger.rotateKey(keyId, 3_600_000);
      const good = (secret: string): Promise<string> => outcome(other.authorize(secret, false));
      expect([await good(first), await good(second), await good(third)]).toEqual([
        "authentication",
        "done",
        "done",
      ]);
      const { secret: fourth } = await ledger.rotateKey(keyId, 0);
      expect([await good(second), await good(third), await good(fourth)]).toEqual([
        "authentication",
        "authentication",
        "done",
      ]);
      await ledger.revokeKey(keyId);
      expect(await good(fourth)).toBe("authentication");
    });

    test("a key shows the minute in which it was last used, whatever for", async () => {
      const stage = await openStage(pair);
      const { clock, keyId, ledger, other, secret } = stage;
      const lastUse = async (): Promise<number | null> =>
        (await ledger.findKey(keyId))?.lastUsedAtMs ?? null;
      const { version } = (await ledger.findKey(keyId)) ?? {};
      expect(await lastUse()).toBeNull();
      const minute = (): number => Math.floor(clock.nowMs / 60_000) * 60_000;
      await other.authorize(secret, false);
      await other.expire();
      await expect.poll(lastUse).toBe(minute());
      clock.nowMs += 60_000;
      await other.authorize(secret, true, true);
      await other.expire();
      await expect.poll(lastUse).toBe(minute());
      // What was refused is no use, and no process that is behind takes the newer time back.
      clock.nowMs += 60_000;
      await expect(other.authorize(`${secret.slice(0, -1)}_`, true)).rejects.toThrow();
      clock.nowMs -= 120_000;
      await other.authorize(secret, false);
      await other.expire();
      clock.nowMs += 60_000;
      await other.authorize(secret, false);
      await other.expire();
      expect(await lastUse()).toBe(minute());
      expect((await ledger.findKey(keyId))?.version).toBe(version);
    });

    test("a key that was never rotated has no second secret", async () => {
      const stage = await openStage(pair);
      const guess = stage.secret.replace(/[^_]{43}$/, "0".repeat(43));
      expect(await outcome(stage.other.authorize(guess, false))).toBe("authentication");
      expect(await outcome(stage.other.authorize(stage.secret, false))).toBe("done");
    });
  });
});

function callerOf({ accountId, keyId }: Stage) {
  return { accountId, keyId } as { readonly accountId: `acct_x`; readonly keyId: `key_x` };
}
