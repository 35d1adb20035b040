import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decideAllowance, type AllowanceOrder } from "../../src/admission/output-allowance.ts";
import {
  chargeNanos,
  formatCredit,
  type Prices,
  reservedPrices,
} from "../../src/admission/price.ts";
import { Failure } from "../../src/failure.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import type { StoreClient } from "../../src/ledger/store-operations.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { defaultSettings, run, secretHash } from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

// The pure functions of src/admission/ are the rules of money. Both stores are held against them, by the same cases.

interface RuleCase extends AllowanceOrder {
  readonly prices: Prices;
  /** Tokens of input, those of them that were cached, and of output that are settled. */
  readonly used: readonly [input: number, cached: number, output: number];
}

const price = fc.oneof(
  fc.bigInt(0n, 10n ** 15n),
  fc.bigInt(0n, 5_000_000n),
  fc.constantFrom(0n, 1n, 999_999n, 1_000_001n),
);
const anyPrices: fc.Arbitrary<Prices> = fc.record(
  {
    inputNanosPerMillion: price,
    cachedInputNanosPerMillion: price,
    outputNanosPerMillion: price,
  },
  { requiredKeys: ["inputNanosPerMillion", "outputNanosPerMillion"] },
);
const requestedTokens = fc.oneof(
  fc.integer({ min: 1, max: 100_000 }),
  fc.integer({ min: 1, max: 50 }),
);
const anyCase: fc.Arbitrary<RuleCase> = fc.record({
  prices: anyPrices,
  availableNanos: fc.oneof(fc.bigInt(0n, 10n ** 18n), fc.bigInt(0n, 10n ** 6n)),
  inputBound: fc.oneof(fc.integer({ min: 0, max: 2_000_000 }), fc.nat(1_000)),
  requested: fc.option(requestedTokens, { nil: null }),
  fitting: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: null }),
  used: fc.tuple(fc.nat(2_000_000), fc.nat(2_000_000), fc.nat(70_000)),
});
/** What the credit pays for to the nano, a nano less and a nano more: the edges that chance seldom meets. */
const atTheEdge = fc
  .tuple(anyCase, fc.integer({ min: 0, max: 70_000 }), fc.constantFrom(-1n, 0n, 1n))
  .map(([one, affords, off]) => {
    const { inputNanosPerMillion, outputNanosPerMillion } = reservedPrices(one.prices);
    const exact =
      BigInt(one.inputBound) * inputNanosPerMillion + BigInt(affords) * outputNanosPerMillion;
    const around = exact / 1_000_000n + off;
    const availableNanos = around < 0n ? 0n : around > 10n ** 18n ? 10n ** 18n : around;
    return { ...one, availableNanos };
  });
const cases = fc.oneof(anyCase, atTheEdge);

type OpenStore = (prices: Prices) => Promise<StoreClient>;

let server: PostgresDatabases;
let url = "";

const openers: Readonly<Record<"sqlite" | "postgres", OpenStore>> = {
  async sqlite(prices) {
    const store = openNewStore({ ...defaultSettings, prices });
    return {
      async call(name, argument) {
        return run(store, name, argument);
      },
      async [Symbol.asyncDispose]() {
        store[Symbol.dispose]();
      },
    };
  },
  postgres: (prices) =>
    connectPostgresStore({ ...defaultSettings, url, prices, connections: 1 }, {}),
};

let accounts = 0;

/** One case through a store, and what it must come to; `listed`: by a price list of its own, else the settings have the prices. */
async function hold(store: StoreClient, one: RuleCase, listed: boolean): Promise<void> {
  accounts += 1;
  const id = `acct_${String(accounts)}` as const;
  const keyId = `key_${String(accounts)}` as const;
  await store.call("createAccount", { id, name: "one", creditNanos: one.availableNanos });
  if (listed) {
    const priceList = `list ${String(accounts)}`;
    const asked = [{ effectiveFromMs: null, ...one.prices }];
    await store.call("createPriceList", { name: priceList, prices: asked });
    await store.call("changeAccount", { id, priceList });
  }
  await store.call("createKey", {
    id: keyId,
    accountId: id,
    name: "one",
    secretHash: secretHash("one"),
  });
  const rate = { limit: 600, remaining: 600, resetMs: 0 };
  const asked = orderOf(
    { accountId: id, keyId, ticket: null, rate, concurrentRequests: 4 },
    {
      requestId: `req_${String(accounts)}`,
      inputBound: one.inputBound,
      outputTokensRequested: one.requested,
      outputTokensFitting: one.fitting,
    },
  );
  const expected = decideAllowance(one, one.prices);
  const seen = await store.call("admit", asked).catch((error: unknown) => error);
  if (!expected.granted) {
    expect(seen instanceof Failure ? seen.facts.shortage : seen).toEqual({
      balance: formatCredit(one.availableNanos),
      held: "0",
      needed: formatCredit(expected.neededNanos),
      affordableOutputTokens: expected.affordable,
      waitingHelps: expected.neededNanos <= one.availableNanos,
    });
    return;
  }
  const { allowance, reservedNanos } = expected;
  expect(seen).toEqual({ allowance, reservedNanos });
  const [input, cachedInputTokens, output] = one.used;
  const plainly = settlementOf(asked, [input, output]);
  const settled = { ...plainly, usage: plainly.usage && { ...plainly.usage, cachedInputTokens } };
  const chargedNanos =
    settled.usage === null ? 0n : chargeNanos(settled.usage, one.prices, reservedNanos);
  expect(await store.call("settle", settled)).toEqual({ chargedNanos, applied: true });
  const { balanceNanos } = await store.call("showAccount", id);
  expect(balanceNanos).toBe(one.availableNanos - chargedNanos);
}

// 1,000 tokens of input cost 1,000,000 nanos and each token of output 4,000: 50 tokens need 1,200,000.
const prices = { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n };
const plain = { prices, inputBound: 1_000, fitting: null, used: [1_000, 0, 50] as const };
const literal: readonly (readonly [string, RuleCase])[] = [
  ["50 tokens, paid for to the nano", { ...plain, requested: 50, availableNanos: 1_200_000n }],
  ["50 tokens, a nano short", { ...plain, requested: 50, availableNanos: 1_199_999n }],
  ["none named, credit for 2", { ...plain, requested: null, availableNanos: 1_008_000n }],
  ["none named, a nano short of 1", { ...plain, requested: null, availableNanos: 1_003_999n }],
  ["above the cap", { ...plain, requested: 100_000, availableNanos: 10n ** 12n }],
  ["cut to the context", { ...plain, requested: null, fitting: 100, availableNanos: 10n ** 12n }],
  [
    "half a nano a token, rounded up",
    {
      ...plain,
      prices: { inputNanosPerMillion: 500_000n, outputNanosPerMillion: 500_000n },
      requested: 2,
      availableNanos: 501n,
      used: [1, 0, 0],
    },
  ],
];

describe.each(postgresTests ? (["sqlite", "postgres"] as const) : (["sqlite"] as const))(
  "the rules of money in %s",
  (name) => {
    beforeAll(async () => {
      if (name !== "postgres") return;
      server = await openPostgresDatabases();
      url = await server.createDatabase("rules");
    });
    afterAll(async () => {
      if (name === "postgres") await server[Symbol.asyncDispose]();
    });

    test.each(literal)("%s: as the pure functions decide", async (_name, one) => {
      await using store = await openers[name](one.prices);
      await hold(store, one, false);
    });

    test("allowance, cost and shortage are those of the pure functions, whatever the prices", async () => {
      await using store = await openers[name](defaultSettings.prices);
      await fc.assert(
        fc.asyncProperty(cases, (one) => hold(store, one, true)),
        { numRuns: name === "sqlite" ? 100 : 40 },
      );
    });
  },
);
