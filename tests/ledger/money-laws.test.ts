import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";
import type { Caller } from "../../src/ledger/ledger.ts";
import type { StoreAnswer, StoreCall } from "../../src/ledger/store-operations.ts";
import { openStore, type SqliteStore, type StoreSettings } from "../../src/ledger/sqlite/store.ts";
import { LedgerModel, type ModelAnswer, type ModelCaller } from "./model.ts";
import { auditProblems, codeOf, defaultSettings, secretHash, temporaryLedger } from "./support.ts";
import { makeLedger } from "./made-ledger.ts";

// Any order of calls, in groups of any size, through two stores on one file, with crashes in between: the answers and
// the rows are those of a model that knows nothing of databases.

const rules = {
  concurrency: 2,
  perMinute: 4,
  leaseMs: 30_000,
  inputNanos: 1_000n,
  outputNanos: 4_000n,
};
const accountIds: readonly AccountId[] = ["acct_a", "acct_b"];
const keyIds: readonly KeyId[] = ["key_a1", "key_a2", "key_b1"];
const accountOfKey = (key: KeyId): AccountId => (key.startsWith("key_a") ? "acct_a" : "acct_b");

const anAccount = fc.constantFrom(...accountIds);
const aKey = fc.constantFrom(...keyIds);
const aRequest = fc.integer({ min: 0, max: 9 }).map((n): RequestId => `req_${String(n)}`);
const usage = fc.option(
  fc.tuple(fc.integer({ min: 0, max: 1_500 }), fc.integer({ min: 0, max: 600 })),
  { nil: null },
);
const operation = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("credit"),
      account: anAccount,
      amount: fc.oneof(fc.bigInt(-4_000_000n, 4_000_000n), fc.constantFrom(0n, -1n)),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("authorize"),
      key: aKey,
      right: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
      counts: fc.integer({ min: 0, max: 4 }).map((n) => n > 0),
      paid: fc.boolean(),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      type: fc.constant("admit"),
      request: aRequest,
      caller: fc.nat(20),
      bound: fc.integer({ min: 65, max: 1_200 }),
      asked: fc.option(fc.integer({ min: 1, max: 500 }), { nil: null }),
    }),
  },
  { weight: 7, arbitrary: fc.record({ type: fc.constant("settle"), request: aRequest, usage }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("renew"),
      requests: fc.uniqueArray(aRequest, { maxLength: 5 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("expire") }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("fault"), account: anAccount }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("status"),
      account: anAccount,
      active: fc.integer({ min: 0, max: 2 }).map((n) => n > 0),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("group"),
      store: fc.constantFrom(0, 1),
      operations: fc.array(operation, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("wait"),
      ms: fc.constantFrom(0, 1, 9_999, 10_000, 29_999, 30_000, 59_999, 60_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("crash"), store: fc.constantFrom(0, 1) }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("revoke"), key: aKey, store: fc.constantFrom(0, 1) }),
  },
);

interface World {
  readonly model: LedgerModel;
  readonly stores: SqliteStore[];
  readonly callers: { readonly caller: Caller; readonly model: ModelCaller }[];
  now: number;
  tickets: number;
}

test("any interleaving gives the answers and the rows of the model", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => {
      using ledger = temporaryLedger();
      makeLedger(ledger.path);
      const settings: StoreSettings = {
        ...defaultSettings,
        path: ledger.path,
        concurrencyPerAccount: rules.concurrency,
        requestsPerMinute: rules.perMinute,
        leaseMs: rules.leaseMs,
      };
      const world: World = {
        model: new LedgerModel(rules),
        stores: [openStore(settings), openStore(settings)],
        callers: [],
        now: 1_000_000,
        tickets: 0,
      };
      try {
        prepare(world, ledger.path);
        for (const one of steps) {
          if (one.type === "group") runGroup(world, one.store, one.operations);
          else if (one.type === "wait") world.now += one.ms;
          else if (one.type === "revoke") revoke(world, one.store, one.key);
          else reopen(world, one.store, settings);
          expect(rows(ledger.path)).toEqual(modelRows(world.model));
        }
        expect(auditProblems(ledger.path)).toEqual([]);
      } finally {
        for (const store of world.stores) store[Symbol.dispose]();
      }
    }),
    { numRuns: 60 },
  );
});

function prepare(world: World, path: string): void {
  const { model, stores } = world;
  const [store] = stores;
  if (store === undefined) throw new Error("no store");
  for (const id of accountIds) {
    execute(store, [
      { name: "createAccount", argument: { id, name: id, creditNanos: 5_000_000n }, nowMs: 0 },
    ]);
    model.accounts.set(id, {
      active: true,
      balance: 5_000_000n,
      held: 0n,
      credited: 5_000_000n,
      spent: 0n,
    });
  }
  for (const id of keyIds) {
    const accountId = accountOfKey(id);
    execute(store, [
      {
        name: "createKey",
        argument: { id, accountId, name: id, secretHash: secretHash(id) },
        nowMs: 0,
      },
    ]);
    model.keys.set(id, { account: accountId, revoked: false, tickets: [] });
  }
  // A fault that comes after the account row has been changed: its savepoint has to undo that.
  using raw = new DatabaseSync(path);
  raw.exec(
    "create trigger fault before insert on entry when new.note = 'fault' begin select raise(abort, 'fault'); end",
  );
}

function runGroup(world: World, index: number, operations: readonly Operation[]): void {
  const store = world.stores[index];
  if (store === undefined) throw new Error("no store");
  const calls: StoreCall[] = [];
  const expected: { answer: ModelAnswer; caller: ModelCaller | null }[] = [];
  for (const one of operations) {
    const call = callOf(one, world);
    if (call === null) continue;
    calls.push(call);
    expected.push(modelAnswer(one, world));
  }
  const answers = execute(store, calls);
  answers.forEach((answer, at) => {
    const wanted = expected[at];
    const call = calls[at];
    if (wanted === undefined || call === undefined) throw new Error("an answer too many");
    expect(seen(call, answer)).toEqual(wanted.answer);
    if (call.name === "authorize" && answer.ok && wanted.caller !== null)
      world.callers.push({ caller: answer.value as Caller, model: wanted.caller });
  });
}

function callOf(one: Operation, world: World): StoreCall | null {
  const nowMs = world.now;
  switch (one.type) {
    case "credit":
      return {
        name: "creditAccount",
        argument: { id: one.account, amountNanos: one.amount, note: null },
        nowMs,
      };
    case "fault":
      return {
        name: "creditAccount",
        argument: { id: one.account, amountNanos: 1n, note: "fault" },
        nowMs,
      };
    case "status": {
      const status = one.active ? "active" : "disabled";
      return { name: "setAccountStatus", argument: { id: one.account, status }, nowMs };
    }
    case "authorize": {
      world.tickets += 1;
      const argument = {
        accountId: accountOfKey(one.key),
        keyId: one.key,
        secretHash: secretHash(one.right ? one.key : "wrong"),
        ticketId: one.counts ? String(world.tickets) : null,
        needsCredit: one.paid,
      };
      return { name: "authorize", argument, nowMs };
    }
    case "admit": {
      const caller = pick(world, one.caller);
      if (caller === null) return null;
      const argument = {
        requestId: one.request,
        caller: caller.caller,
        inputBound: one.bound,
        outputTokensRequested: one.asked,
        outputTokensFitting: null,
        format: "messages",
        streamed: false,
        label: null,
      };
      return { name: "admit", argument, nowMs };
    }
    case "settle": {
      const account = world.model.reservations.get(one.request)?.account ?? "acct_a";
      const tokens = one.usage;
      const argument = {
        requestId: one.request,
        accountId: account as AccountId,
        outcome: "completed" as const,
        usage:
          tokens === null
            ? null
            : {
                inputTokens: tokens[0],
                cachedInputTokens: 0,
                outputTokens: tokens[1],
                reasoningTokens: 0,
              },
        firstOutputMs: null,
        totalMs: 1,
      };
      return { name: "settle", argument, nowMs };
    }
    case "renew":
      return { name: "renew", argument: one.requests, nowMs };
    case "expire":
      return { name: "expire", argument: null, nowMs };
    default:
      return one satisfies never;
  }
}

function modelAnswer(
  one: Operation,
  world: World,
): { answer: ModelAnswer; caller: ModelCaller | null } {
  const { model, now } = world;
  switch (one.type) {
    case "credit":
      return told(model.credit(one.account, one.amount));
    case "fault":
      return told("fault");
    case "status":
      model.account(one.account).active = one.active;
      return told(["status"]);
    case "authorize": {
      const [answer, caller] = model.authorize(one, now);
      return { answer, caller };
    }
    case "admit": {
      const caller = pick(world, one.caller);
      if (caller === null) throw new Error("callOf leaves these out");
      return told(model.admit(one.request, caller.model, one.bound, one.asked, now));
    }
    case "settle":
      return told(model.settle(one.request, one.usage));
    case "renew":
      return told(model.renew(one.requests, now));
    case "expire":
      return told(model.expire(now));
    default:
      return one satisfies never;
  }
}

function told(answer: ModelAnswer): { answer: ModelAnswer; caller: null } {
  return { answer, caller: null };
}

/** A caller from an earlier group, also one that was used before: requests are repeated and callers come late. */
function pick(world: World, at: number): World["callers"][number] | null {
  return world.callers[world.callers.length - 1 - (at % Math.max(world.callers.length, 1))] ?? null;
}

function seen(call: StoreCall, answer: StoreAnswer): ModelAnswer {
  if (!answer.ok) return codeOf(answer.error);
  const value = answer.value as never;
  if (call.name === "creditAccount") {
    const { account }: { account: { balanceNanos: bigint; heldNanos: bigint } } = value;
    return [account.balanceNanos, account.heldNanos];
  }
  if (call.name === "authorize") return ["authorized", (value as Caller).rate.remaining];
  if (call.name === "admit") {
    const admission: { allowance: number; reservedNanos: bigint } = value;
    return ["admitted", admission.allowance, admission.reservedNanos];
  }
  if (call.name === "settle") {
    const settled: { chargedNanos: bigint; applied: boolean } = value;
    return ["settled", settled.chargedNanos, settled.applied];
  }
  if (call.name === "expire") return ["expired", value];
  return call.name === "renew" ? value : ["status"];
}

function revoke(world: World, index: number, key: KeyId): void {
  // Every key at last would leave nothing to do: the one of the second account stays.
  if (key === "key_b1" || world.now < 1_060_000) return;
  const store = world.stores[index];
  if (store === undefined) throw new Error("no store");
  execute(store, [{ name: "revokeKey", argument: { id: key }, nowMs: world.now }]);
  world.model.key(key).revoked = true;
}

/** A process that died leaves nothing but the file. */
function reopen(world: World, index: number, settings: StoreSettings): void {
  world.stores[index]?.[Symbol.dispose]();
  world.stores[index] = openStore(settings);
}

function execute(store: SqliteStore, calls: readonly StoreCall[]): readonly StoreAnswer[] {
  return store.execute(calls);
}

function rows(path: string): unknown {
  using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  const all = (sql: string): unknown[] =>
    database
      .prepare(sql)
      .all()
      .map((row) => Object.values(row));
  return {
    accounts: all("select id, status, balance_nanos, held_nanos, running from account order by id"),
    reservations: all(
      "select request_id, account_id, state, allowance, reserved_nanos, charged_nanos, lease_until_ms from reservation order by request_id",
    ),
  };
}

function modelRows(model: LedgerModel): unknown {
  return {
    accounts: [...model.accounts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, one]) => [
        id,
        one.active ? "active" : "disabled",
        one.balance,
        one.held,
        BigInt(model.running(id)),
      ]),
    reservations: [...model.reservations]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, one]) => [
        id,
        one.account,
        one.state,
        BigInt(one.allowance),
        one.reserved,
        one.state === "open" ? null : one.charged,
        BigInt(one.leaseUntil),
      ]),
  };
}
