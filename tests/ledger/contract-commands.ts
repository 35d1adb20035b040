import * as fc from "fast-check";
import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";

// Commands of the contract test. Requests are named after their account: the service makes their ids, and no two
// accounts ever share one.

/** The numbers that stores and model decide by. */
export const contractRules = {
  concurrency: 2,
  perMinute: 4,
  leaseMs: 30_000,
  inputNanos: 1_000n,
  outputNanos: 4_000n,
};
export const accountIds: readonly AccountId[] = ["acct_a", "acct_b"];
export const keyIds: readonly KeyId[] = ["key_a1", "key_a2", "key_b1"];

/** The account of a key or a request, by its name. */
export function accountOfName(name: KeyId | RequestId): AccountId {
  return /^(?:key|req)_a/.test(name) ? "acct_a" : "acct_b";
}

const anAccount = fc.constantFrom(...accountIds);
const aKey = fc.constantFrom(...keyIds);
const aRequest = fc
  .tuple(fc.constantFrom("a", "b"), fc.integer({ min: 0, max: 5 }))
  .map(([account, n]): RequestId => `req_${account}${String(n)}`);
const mostly = fc.integer({ min: 0, max: 9 }).map((n) => n > 0);
const usage = fc.option(
  fc.tuple(fc.integer({ min: 0, max: 1_500 }), fc.integer({ min: 0, max: 600 })),
  { nil: null },
);
const amount = fc.oneof(
  fc.bigInt(-4_000_000n, 4_000_000n),
  // What leaves just enough for the smallest request, and a nano less.
  fc.constantFrom(-4_932_000n, -4_932_001n),
  fc.constantFrom(0n, -1n, 10n ** 18n, 10n ** 18n + 1n, 10n ** 30n),
);

/** One thing that a caller, an operator or time does; `replica` is who does it. */
export const aCommand = fc.oneof(
  command(6, {
    type: fc.constant("authorize"),
    key: aKey,
    right: mostly,
    counts: mostly,
    paid: mostly,
  }),
  // Of which earlier caller, counted from the last one.
  command(1, { type: fc.constant("give-back"), caller: fc.nat(3) }),
  command(9, {
    type: fc.constant("admit"),
    // Of which earlier caller, counted from the last one.
    caller: fc.nat(12),
    request: fc.integer({ min: 0, max: 5 }),
    bound: fc.integer({ min: 65, max: 1_200 }),
    asked: fc.option(fc.integer({ min: 1, max: 500 }), { nil: null }),
  }),
  command(7, { type: fc.constant("settle"), request: aRequest, usage }),
  command(2, { type: fc.constant("renew"), requests: fc.uniqueArray(aRequest, { maxLength: 5 }) }),
  command(3, { type: fc.constant("expire") }),
  command(2, { type: fc.constant("credit"), account: anAccount, amount }),
  command(2, {
    type: fc.constant("budget"),
    key: aKey,
    amount: fc.constantFrom(null, 0n, 1_500_000n, 3_000_000n, 4_000_000n),
    days: mostly,
  }),
  command(2, {
    type: fc.constant("grant"),
    account: anAccount,
    amount: fc.constantFrom(null, 1_000_000n, 3_000_000n),
    carry: fc.boolean(),
  }),
  command(1, { type: fc.constant("pay") }),
  command(1, { type: fc.constant("status"), account: anAccount, active: mostly }),
  command(1, {
    type: fc.constant("revoke"),
    key: fc.constantFrom<KeyId>("key_a1", "key_a2", "key_x"),
  }),
  command(1, {
    type: fc.constant("look"),
    at: fc.constantFrom<"listAccounts" | "showAccount" | "listKeys">(
      "listAccounts",
      "showAccount",
      "listKeys",
    ),
    account: fc.constantFrom<string>("acct_a", "acct_b", "acct_none"),
  }),
  command(1, { type: fc.constant("reconnect") }),
  command(3, {
    type: fc.constant("wait"),
    ms: fc.constantFrom(0, 1, 10_000, 29_999, 30_000, 30_000, 59_999, 60_000, 86_400_000),
  }),
);
export type Command = typeof aCommand extends fc.Arbitrary<infer Value> ? Value : never;

function command<Fields extends { readonly type: string }>(
  weight: number,
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
): { weight: number; arbitrary: fc.Arbitrary<Fields & { readonly replica: 0 | 1 }> } {
  const replica = fc.constantFrom<0 | 1>(0, 1);
  const arbitrary = fc.record({ ...fields, replica }) as fc.Arbitrary<
    Fields & { readonly replica: 0 | 1 }
  >;
  return { weight, arbitrary };
}
