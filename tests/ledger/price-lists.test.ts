import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Prices } from "../../src/admission/price.ts";
import { Failure } from "../../src/failure.ts";
import type { ChangedBy } from "../../src/ledger/administration/changed-by.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openLedgerHere } from "./ledger-here.ts";
import { makeLedger } from "./made-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests } from "./postgres-server.ts";
import { codeOf, defaultSettings, temporaryLedger } from "./support.ts";

// Price lists in both stores: which prices a request gets, what it reserves, and what it is charged.

interface Stage extends AsyncDisposable {
  readonly ledger: StoreLedger;
  /** Another replica of the service, with prices of its own in its settings. */
  other(prices: Prices): Promise<StoreLedger>;
  nowMs: number;
  execute(sql: string): Promise<unknown>;
}

const begin = 1_000_000;
const settings = defaultSettings.prices;
let server: Awaited<ReturnType<typeof openPostgresDatabases>> | null = null;
let databases = 0;

async function openSqliteStage(): Promise<Stage> {
  const opened = new AsyncDisposableStack();
  const file = opened.use(temporaryLedger());
  makeLedger(file.path);
  const open = (prices: Prices): StoreLedger =>
    opened.use(
      openLedgerHere(
        { ...defaultSettings, path: file.path, prices },
        { now: () => stage.nowMs, actor: "user:ann" },
      ),
    );
  const stage = { nowMs: begin };
  const ledger = open(settings);
  return Object.assign(stage, {
    ledger,
    other: (prices: Prices) => Promise.resolve(open(prices)),
    async execute(sql: string): Promise<unknown> {
      await Promise.resolve();
      using database = new DatabaseSync(file.path);
      return database.prepare(sql).all();
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  });
}

async function openPostgresStage(): Promise<Stage> {
  const opened = new AsyncDisposableStack();
  databases += 1;
  const url = (await server?.createLedger(`prices_${String(databases)}`)) ?? "";
  const open = async (prices: Prices): Promise<StoreLedger> =>
    opened.use(
      await openPostgresLedger(
        { ...defaultSettings, url, prices },
        { now: () => stage.nowMs, actor: "user:ann" },
      ),
    );
  const stage = { nowMs: begin };
  const ledger = await open(settings);
  return Object.assign(stage, {
    ledger,
    other: open,
    execute: (sql: string) => execute(url, `set search_path = tributary; ${sql}`),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  });
}

/** Credits for a million tokens, as nanos. */
function prices(input: number, output: number, cached?: number): Prices {
  const nanos = (credits: number): bigint => BigInt(Math.round(credits * 1e9));
  return {
    inputNanosPerMillion: nanos(input),
    ...(cached === undefined ? {} : { cachedInputNanosPerMillion: nanos(cached) }),
    outputNanosPerMillion: nanos(output),
  };
}

function from(effectiveFromMs: number | null, ...given: Parameters<typeof prices>) {
  return { effectiveFromMs, ...prices(...given) };
}

let requests = 0;

/** One request of a new account: what it reserves for 1,000 tokens of input and 100 of output, and what ends it. */
async function serve(
  ledger: StoreLedger,
  priceList: string | null,
  credit = 10n ** 12n,
): Promise<{ readonly id: string; settle(cachedInputTokens: number): Promise<bigint> }> {
  requests += 1;
  const account = await ledger.createAccount("served", credit);
  if (priceList !== null) await ledger.changeAccount(account.id, { priceList });
  const { secret } = await ledger.createKey(account.id, "key");
  const order = orderOf(await ledger.authorize(secret, true, true), {
    requestId: `req_${String(requests)}`,
    inputBound: 1_000,
    outputTokensRequested: 100,
  });
  await ledger.admit(order);
  return {
    id: order.requestId,
    async settle(cachedInputTokens) {
      const settlement = settlementOf(order, [900, 50]);
      const usage = settlement.usage && { ...settlement.usage, cachedInputTokens };
      return (await ledger.settle({ ...settlement, usage })).chargedNanos;
    },
  };
}

function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

function message(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "done",
    (error: unknown) => (error instanceof Error ? error.message : ""),
  );
}

describe.each([
  ["sqlite", openSqliteStage],
  ...(postgresTests ? ([["postgres", openPostgresStage]] as const) : []),
] as const)("price lists in %s", (name, openStage) => {
  beforeAll(async () => {
    if (name === "postgres") server = await openPostgresDatabases();
  });
  afterAll(async () => {
    if (name === "postgres") await server?.[Symbol.asyncDispose]();
  });

  test("the settings are the list `default` until one of that name is made, on every replica", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    const dear = prices(2, 8);
    const other = await stage.other(dear);
    expect(await other.showPriceList({ name: "default", settings: dear })).toEqual({
      name: "default",
      version: 0,
      createdAtMs: null,
      prices: [{ effectiveFromMs: null, ...dear }],
    });
    const before = await serve(other, null);
    const made = await ledger.createPriceList({ name: "default", prices: [from(null, 3, 5)] });
    const after = await serve(other, null);
    expect(made).toMatchObject({ version: 1, createdAtMs: begin });
    expect(await other.showPriceList({ name: "default", settings: dear })).toEqual(made);
    expect(await ledger.showReceipt(before.id)).toMatchObject({
      priceList: "default",
      prices: dear,
      reservedNanos: 2_800_000n,
    });
    expect(await ledger.showReceipt(after.id)).toMatchObject({
      priceList: "default",
      prices: prices(3, 5),
      reservedNanos: 3_500_000n,
    });
    expect(await before.settle(0)).toBe(2_200_000n);
    expect(await after.settle(0)).toBe(2_950_000n);
    expect((await ledger.verify([])).problems).toEqual([]);
  });

  test("a price holds from its moment on, and the reservation keeps that of its own", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    const at = begin + 1_000;
    await ledger.createPriceList({
      name: "team",
      prices: [from(null, 1, 1), from(at, 2, 2), from(at + 500, 0, 0)],
    });
    stage.nowMs = at - 1;
    const first = await serve(ledger, "team");
    stage.nowMs = at;
    const second = await serve(ledger, "team");
    stage.nowMs = at + 500;
    const third = await serve(ledger, "team");
    expect([await first.settle(0), await second.settle(0), await third.settle(0)]).toEqual([
      950_000n,
      1_900_000n,
      0n,
    ]);
    expect((await ledger.showReceipt(first.id)).priceList).toBe("team");
    // A clock that was set back to before the list: its first price, and never none.
    stage.nowMs = begin - 1;
    expect(await (await serve(ledger, "team")).settle(0)).toBe(950_000n);
    expect((await ledger.verify([])).problems).toEqual([]);
  });

  test("`default` may begin later: until then the settings hold", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    await ledger.createPriceList({ name: "default", prices: [from(begin + 1, 5, 5)] });
    expect(await (await serve(ledger, null)).settle(0)).toBe(1_100_000n);
    stage.nowMs = begin + 1;
    expect(await (await serve(ledger, null)).settle(0)).toBe(4_750_000n);
  });

  test.each([
    ["cheaper", 0.1, 1_400_000n, 180_000n + 200_000n],
    ["dearer", 3, 3_400_000n, 100_000n + 800_000n * 3n + 200_000n],
    ["without a price", undefined, 1_400_000n, 900_000n + 200_000n],
  ] as const)(
    "cached input that is %s: reserved at the dearer price, charged at its own",
    async (_name, cached, reservedNanos, chargedNanos) => {
      await using stage = await openStage();
      const { ledger } = stage;
      await ledger.createPriceList({ name: "cache", prices: [from(null, 1, 4, cached)] });
      const served = await serve(ledger, "cache");
      expect(await ledger.showReceipt(served.id)).toMatchObject({ reservedNanos });
      expect(await served.settle(800)).toBe(chargedNanos);
      expect((await ledger.verify([])).problems).toEqual([]);
    },
  );

  test("cached input is never more than the input", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    await ledger.createPriceList({ name: "cache", prices: [from(null, 1, 4, 0.5)] });
    expect(await (await serve(ledger, "cache")).settle(5_000)).toBe(450_000n + 200_000n);
    expect((await ledger.verify([])).problems).toEqual([]);
  });

  test("a charge that is not what the prices of its receipt come to is found", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    await ledger.createPriceList({ name: "cache", prices: [from(null, 1, 4, 0.5)] });
    const served = await serve(ledger, "cache");
    await served.settle(800);
    await stage.execute(
      `update reservation set cached_input_nanos_per_million = 499000000 where request_id = '${served.id}'`,
    );
    expect((await ledger.verify([])).problems).toMatchObject([
      { code: "receipt-differs", request: served.id },
    ]);
  });

  test("the early 402 goes by the account's own prices: a free list asks for no credit", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    await ledger.createPriceList({ name: "free", prices: [from(null, 0, 0)] });
    expect(await (await serve(ledger, "free", 0n)).settle(0)).toBe(0n);
    const refused = await serve(ledger, null, 0n).catch((error: unknown) => error);
    expect(refused instanceof Failure ? refused.facts.shortage?.needed : refused).toBe("0.000068");

    const generous = await stage.other(prices(0, 0));
    await ledger.createPriceList({ name: "dear", prices: [from(null, 1000, 1000, 2000)] });
    const dear = await serve(generous, "dear", 1n).catch((error: unknown) => error);
    expect(dear instanceof Failure ? dear.facts.shortage?.needed : dear).toBe("0.129");
  });

  test("an account shows its own prices of now", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    await ledger.createPriceList({
      name: "team",
      prices: [from(null, 1, 2, 0.5), from(begin + 10, 3, 4)],
    });
    const { id } = await ledger.createAccount("one", 0n);
    const { secret } = await ledger.createKey(id, "key");
    const caller = await ledger.authorize(secret, false);
    const shown = async (): Promise<Prices> => (await ledger.showCaller(caller)).prices;
    expect(await shown()).toEqual(settings);
    expect(await ledger.changeAccount(id, { priceList: "team" })).toMatchObject({
      priceList: "team",
    });
    expect(await shown()).toEqual(prices(1, 2, 0.5));
    stage.nowMs += 10;
    expect(await shown()).toEqual(prices(3, 4));
    await ledger.changeAccount(id, { priceList: "default" });
    expect(await shown()).toEqual(settings);
    expect(await refusal(ledger.changeAccount(id, { priceList: "nope" }))).toBe("not_found");
  });

  test("what has begun stays; what is to come is replaced by what is asked for", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    const at = begin + 1_000;
    const one = from(null, 1, 1);
    const made = await ledger.createPriceList({
      name: "team",
      prices: [one, from(at, 2, 2), from(at + 1_000, 3, 3)],
    });
    stage.nowMs = at;
    const change = (given: readonly ReturnType<typeof from>[], ifVersion: number | null = null) =>
      ledger
        .administer({ actor: "user:ann", once: null, ifVersion })
        .changePriceList({ name: "team", prices: given });
    expect(await message(change([from(at, 2, 3)]))).toContain("is in the past");
    expect(await message(change([from(at - 1, 2, 2)]))).toContain("is in the past");
    expect(await message(change([from(null, 9, 9)]))).toContain("is in the past");
    // As it was read, without the last and with another.
    const changed = await change([...made.prices.slice(0, 2), from(at + 5, 4, 4)], 1);
    expect(changed).toEqual({
      ...made,
      version: 2,
      prices: [...made.prices.slice(0, 2), from(at + 5, 4, 4)],
    });
    expect(await change(changed.prices)).toEqual(changed);
    expect(await refusal(change([from(at + 9, 1, 1)], 1))).not.toBe("done");
    stage.nowMs = at + 1;
    expect((await change([from(null, 5, 5)])).prices).toEqual([
      ...made.prices.slice(0, 2),
      from(at + 1, 5, 5),
    ]);
    expect(await ledger.showPriceList({ name: "team", settings })).toMatchObject({ version: 3 });
    expect(await (await serve(ledger, "team")).settle(0)).toBe(4_750_000n);
  });

  test("what cannot be is refused, and leaves nothing", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    const make = (list: string, ...given: readonly ReturnType<typeof from>[]): Promise<string> =>
      message(ledger.createPriceList({ name: list, prices: given }));
    expect(await make("a/b", from(null, 1, 1))).toContain("The name of a price list");
    expect(await make("team")).toContain("`prices` is empty");
    expect(await make("team", from(begin + 1, 1, 1))).toContain("none that holds now");
    expect(await make("team", from(null, 1, 1), from(begin, 1, 1))).toContain("two with the same");
    expect(await make("team", from(null, 1_000_001, 1))).toContain("0 to 1000000 credits");
    expect(await make("team", from(null, -1, 1))).toContain("0 to 1000000 credits");
    const many = Array.from({ length: 201 }, (_, one) => from(begin + one, 1, 1));
    expect(await make("team", ...many)).toContain("at most 200 prices");
    expect(await make("team", from(null, 1, 1))).toBe("done");
    expect(await make("team", from(null, 1, 1))).toContain("already");
    const change = { prices: null };
    expect(await refusal(ledger.changePriceList({ name: "nope", ...change }))).toBe("not_found");
    expect(await message(ledger.changePriceList({ name: "default", ...change }))).toContain(
      "Make it first",
    );
    expect(await ledger.pagePriceLists({ after: null, rowsMax: 9, settings })).toMatchObject([
      { name: "default", version: 0 },
      { name: "team", version: 1 },
    ]);
  });

  test("lists come in the order of their names, `default` among them", async () => {
    await using stage = await openStage();
    const { ledger } = stage;
    for (const list of ["b", "e", "a"])
      await ledger.createPriceList({ name: list, prices: [from(null, 1, 1)] });
    const page = async (after: string | null, rowsMax: number): Promise<readonly string[]> =>
      (await ledger.pagePriceLists({ after, rowsMax, settings })).map((list) => list.name);
    expect(await page(null, 9)).toEqual(["a", "b", "default", "e"]);
    expect(await page(null, 2)).toEqual(["a", "b"]);
    expect(await page("b", 2)).toEqual(["default", "e"]);
    expect(await page("default", 2)).toEqual(["e"]);
    await ledger.createPriceList({ name: "default", prices: [from(null, 1, 1)] });
    expect(await page(null, 9)).toEqual(["a", "b", "default", "e"]);
    expect(await page("a", 2)).toEqual(["b", "default"]);
  });

  test("what was changed is in the audit log, and a repeat under its key changes nothing", async () => {
    await using stage = await openStage();
    const by: ChangedBy = {
      actor: "oper_1",
      once: { route: "POST /price_lists", key: "k", bodyHash: new Uint8Array(32) },
    };
    const asked = { name: "team", prices: [from(null, 1, 4, 0.1)] };
    const made = await stage.ledger.administer(by).createPriceList(asked);
    stage.nowMs += 5;
    expect(await stage.ledger.administer(by).createPriceList(asked)).toEqual(made);
    const later = [from(begin + 100, 2, 8)];
    await stage.ledger.changePriceList({ name: "team", prices: later });
    const query = { actor: null, action: null, target: "team", sinceMs: null, untilMs: null };
    const rows = await stage.ledger.listAudit({ ...query, before: null, rowsMax: 9 });
    const first = "from 1970-01-01T00:16:40.000Z: input 1, cached input 0.1, output 4";
    expect(rows).toMatchObject([
      {
        actor: "user:ann",
        action: "price_list.change",
        before: { prices: first },
        after: {
          prices: `${first}; from 1970-01-01T00:16:40.100Z: input 2, cached input 2, output 8`,
        },
      },
      { actor: "oper_1", action: "price_list.create", before: null, after: { prices: first } },
    ]);
  });
});
