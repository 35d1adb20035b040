import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import * as fc from "fast-check";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decideAllowance, outputAllowanceCap } from "../../src/admission/output-allowance.ts";
import { chargeNanos, costNanos } from "../../src/admission/price.ts";
import { postgresMigrations } from "../../src/ledger/migrations/postgres/migrations.ts";
import { functions } from "../../src/ledger/postgres/functions.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { defaultSettings } from "./support.ts";

/** The SHA-256 of the functions that each migration makes, by its name; those before made them by themselves. */
const hashes: Readonly<Record<string, string>> = {
  "0006-functions-by-themselves":
    "ee91a9892a9d7d6ec9aeb62e3493107af811ae138102974b9a0cb16fb2b7c61f",
  "0007-oldest": "ee91a9892a9d7d6ec9aeb62e3493107af811ae138102974b9a0cb16fb2b7c61f",
  "0008-operators": "ee91a9892a9d7d6ec9aeb62e3493107af811ae138102974b9a0cb16fb2b7c61f",
  "0009-batches": "6f308b3724183129a4810156c09a459d88c083d7c5c284f2061cc4fe1edfbbb2",
  "0010-policies": "6f308b3724183129a4810156c09a459d88c083d7c5c284f2061cc4fe1edfbbb2",
  "0011-events": "2b16086c89ed66656e4a00367e1538f76be9314392d14c9708f69d0e947d4652",
  "0013-prices": "b3d64137a4ca8b9ac5fc10daa785540050e8b8608f64d9148ec09a0951c9e276",
  "0014-budgets": "b3d64137a4ca8b9ac5fc10daa785540050e8b8608f64d9148ec09a0951c9e276",
  "0015-references": "9a086e0bf3b3e92d5862eb23489a72d0af5daae276910d247204d741a784a618",
  "0016-labels": "d889e50535128edfcdc6545b0b84a453d32eafa159c3a2d16c6acea4df03a935",
  "0018-own-prices": "255475300b3998633e7cd71284d1da3a34887bd928e9f8f67007d117ad1f3d50",
  "0019-limits": "4b18289d09d546f891030279d4367429a4cc1936d47172399198f03afa33c254",
  "0020-budget-rules": "8f99d0def1ab050a9838a05c8ca55efcf525f4a685c3061abb92867472976342",
  "0021-prices-when-needed": "04e31661e1025a7879710208b8e18f6dc332973f5675d3bf05400dde63fd766f",
  "0022-budget-events": "a933a60d1608ddc97a953fc724ebbc8989c9cf650b98415028a981d077f04840",
  "0023-usage": "a933a60d1608ddc97a953fc724ebbc8989c9cf650b98415028a981d077f04840",
  "0024-grants": "6ea4163d678faa36e2e10bbd66cf28e3e1a6ef759a3ae7b86fa49a7a3e36df06",
  "0025-tickets-ahead": "5300f4496f65dc17e3a64f67c224f81ad7e981bf4b1c3375c634a7fe9a8e4c04",
  "0027-admitted": "5300f4496f65dc17e3a64f67c224f81ad7e981bf4b1c3375c634a7fe9a8e4c04",
  "0028-archives": "5300f4496f65dc17e3a64f67c224f81ad7e981bf4b1c3375c634a7fe9a8e4c04",
  "0029-usage-of-weeks": "5300f4496f65dc17e3a64f67c224f81ad7e981bf4b1c3375c634a7fe9a8e4c04",
  "0030-looks-in-time": "541e29efb936e141bdadef29c9addd7803e01d34943078f4df9ba7a923f2f57a",
  "0031-asked-again-late": "8276b39d7e82143e95b292dbc38ce77e603afcc77febfaf2d283039580ee94c9",
  "0032-shorter-checks": "1bdca36e91a1d8a1c9004b340f29b48b25497f9a627e91f6a58f06e13b2a98d4",
};

test("a function that was edited has a migration that makes it anew", () => {
  const last = postgresMigrations.at(-1)?.name ?? "";
  const hash = createHash("sha256").update(functions).digest("hex");
  // Where this fails: add a migration to migrations/postgres/migrations.ts, without statements of its own where only
  // functions have changed, and its line above.
  expect({ last, hash }).toEqual({ last, hash: hashes[last] });
});

// Schema 5 made them for replicas of its time; a database that it made still has them, and nothing calls them.
const leftOfBefore = ["admit/17", "authorize/8", "expire/2"];

const describeFunctions = `select p.proname || '/' || p.pronargs as name, pg_get_functiondef(p.oid) as definition
  from pg_proc p where p.pronamespace = 'tributary'::regnamespace order by 1`;
const describeTables = `select table_name, column_name, data_type, is_nullable, column_default, collation_name
    from information_schema.columns where table_schema = 'tributary'
  union all select tablename, indexname, indexdef, null, null, null from pg_indexes where schemaname = 'tributary'
  union all select conrelid::regclass::text, conname, pg_get_constraintdef(oid), null, null, null
    from pg_constraint where connamespace = 'tributary'::regnamespace
  union all select tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), null, null, null
    from pg_trigger where not tgisinternal
  order by 1, 2, 3`;

/** What the account of the test below, which holds something, can never be set to. */
const accountValues = [
  ...["balance_nanos = -1", "held_nanos = -1", "held_nanos = balance_nanos + 1", "running = -1"],
  ...["running = 0", "entries = -1", "grant_left_nanos = -1", "head = 'short'"],
  ...["id = 'one'", "status = 'gone'", "concurrent_requests = 0", "requests_per_minute = 0"],
  ...["output_tokens_max = 0", "low_balance_nanos = -1", "balance_low = 2", "exhausted = 2"],
  ...["grant_nanos = 0", "grant_every = 'year'", "grant_carry_over = 2"],
];
const everyReservation = [
  ...["state = 'gone'", "input_bound = -1", "allowance = 0", "input_nanos_per_million = -1"],
  ...["cached_input_nanos_per_million = -1", "output_nanos_per_million = -1", "lease_ms = 0"],
  ...["refunded_nanos = -1", "reserved_nanos = -1", "head = 'short'", "label = ''"],
  "label = repeat('l', 129)",
];
const openReservation = ["charged_nanos = 0", "outcome = 'completed'", "resolved_at_ms = 1"];
const settledReservation = [
  ...["state = 'open'", "state = 'expired'", "charged_nanos = -1", "outcome = null"],
  ...["charged_nanos = reserved_nanos + 1", "charged_nanos = null", "resolved_at_ms = null"],
];

describe.skipIf(!postgresTests)("the functions of PostgreSQL", () => {
  let server: PostgresDatabases;
  const rules = { ...defaultSettings };
  beforeAll(async () => {
    server = await openPostgresDatabases();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function migrated(name: string, before: string | null): Promise<string> {
    const url = await server.createDatabase(name);
    if (before !== null) await execute(url, before);
    await (await openPostgresLedger({ ...rules, url }, {}))[Symbol.asyncDispose]();
    return url;
  }

  test("a database of schema 5 becomes what a new one is, and keeps what replicas of before call", async () => {
    const schema5 = await readFile(new URL("schemas/postgres-5.sql", import.meta.url), "utf8");
    const [old, fresh] = [await migrated("old", schema5), await migrated("fresh", null)];
    expect(await execute(old, describeTables)).toEqual(await execute(fresh, describeTables));
    const functionsOf = async (url: string): Promise<ReadonlyMap<unknown, unknown>> =>
      new Map(
        (await execute(url, describeFunctions)).map((row) => [row["name"], row["definition"]]),
      );
    const current = await functionsOf(fresh);
    const upgraded = await functionsOf(old);
    expect([...upgraded.keys()].filter((name) => !current.has(name))).toEqual(leftOfBefore);
    for (const [name, definition] of current) expect(upgraded.get(name)).toBe(definition);
  });

  test("what schema 5 has reserved is settled and verified after the migration", async () => {
    const schema5 = await readFile(new URL("schemas/postgres-5.sql", import.meta.url), "utf8");
    const url = await server.createDatabase("running");
    await execute(url, schema5);
    await execute(
      url,
      `insert into tributary.account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
         values ('acct_a', 'a', 'active', 0, 0, 0, 0, 1);
       insert into tributary.api_key (account_id, id, name, secret_hash, created_at_ms)
         values ('acct_a', 'key_a', 'a', sha256('a'), 1);
       select tributary.move('acct_a', 'credit', 5000000, 0, 0, 'operator', null, 'starting credit', 2);
       select verdict from tributary.admit('acct_a', 'key_a', 'req_1', null, null, false, 1000, 100, true, 65536,
         'messages', true, 1000000000, 4000000000, 4, 60000, null, null)`,
    );
    await using ledger = await openPostgresLedger({ ...rules, url }, {});
    const settled = await ledger.settle({
      requestId: "req_1",
      accountId: "acct_a",
      outcome: "completed",
      usage: { inputTokens: 100, cachedInputTokens: 0, outputTokens: 10, reasoningTokens: 0 },
      firstOutputMs: 1,
      totalMs: 2,
    });
    expect(settled).toEqual({ chargedNanos: 140_000n, applied: true });
    expect(await ledger.verify([])).toMatchObject({ ok: true, entries: 3 });
  });

  test("credit moves only in a transaction that has locked its account", async () => {
    const url = await migrated("moves", null);
    await using ledger = await openPostgresLedger({ ...rules, url }, {});
    const { id } = await ledger.createAccount("one", 5n);
    const move = `select tributary.move('${id}', 'credit', 1, 0, 0, 'operator', null, null, 0)`;
    await expect(execute(url, move)).rejects.toThrow(/has not locked account/);
    await execute(
      url,
      `begin; select 1 from tributary.account where id = '${id}' for no key update; ${move}; commit`,
    );
    expect((await ledger.showAccount(id)).balanceNanos).toBe(6n);
  });

  test("values that no row of an account or a reservation may have are refused by the schema", async () => {
    const url = await migrated("checks", null);
    await using ledger = await openPostgresLedger({ ...rules, url }, {});
    const { id } = await ledger.createAccount("one", 10n ** 9n);
    const { secret } = await ledger.createKey(id, "one");
    const [open, settled] = [
      orderOf(await ledger.authorize(secret, true)),
      orderOf(await ledger.authorize(secret, true)),
    ];
    for (const order of [open, settled]) await ledger.admit(order);
    await ledger.settle(settlementOf(settled));
    const changes = {
      account: accountValues,
      "reservation where state = 'open'": [...everyReservation, ...openReservation],
      "reservation where state = 'settled'": [...everyReservation, ...settledReservation],
    };
    for (const [rows, values] of Object.entries(changes)) {
      const [table = "", where = ""] = rows.split(" where ");
      for (const value of values) {
        const sql = `update tributary.${table} set ${value} ${where === "" ? "" : `where ${where}`}`;
        await expect(execute(url, sql), sql).rejects.toMatchObject({ code: "23514" });
      }
    }
    await expect(
      execute(
        url,
        `insert into tributary.account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
           values ('one', 'a', 'active', 0, 0, 0, 0, 1)`,
      ),
    ).rejects.toMatchObject({ code: "23514" });
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });

  test("cost, charge and allowance are those of the pure functions in 3,000 cases", async () => {
    const url = await migrated("pure", null);
    const price = fc.oneof(
      fc.bigInt(0n, 10n ** 13n),
      fc.constantFrom(0n, 1n, 999_999n, 1_000_001n),
    );
    const one = fc.record({
      input: fc.oneof(fc.nat(2_000_000), fc.nat(1_000)),
      output: fc.oneof(fc.nat(70_000), fc.nat(50)),
      cached: fc.nat(2_000_000),
      prices: fc.record({
        inputNanosPerMillion: price,
        cachedInputNanosPerMillion: price,
        outputNanosPerMillion: price,
      }),
      requested: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: null }),
      fitting: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: null }),
      off: fc.constantFrom(-1n, 0n, 1n, 1_000n),
    });
    const cases = fc.sample(one, { numRuns: 3_000, seed: 6 }).map((each) => {
      // Around what the tokens cost: where a nano decides.
      const cost = costNanos(each.input, each.output, each.prices) + each.off;
      return { ...each, available: cost < 0n ? 0n : cost };
    });
    const asked = cases.map(({ available, cached, fitting, input, output, prices, requested }) => ({
      input,
      cached,
      output,
      input_price: prices.inputNanosPerMillion.toString(),
      cached_price: prices.cachedInputNanosPerMillion.toString(),
      output_price: prices.outputNanosPerMillion.toString(),
      available: available.toString(),
      cap: outputAllowanceCap(requested, fitting),
      explicit: requested !== null,
    }));
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<Record<string, string>>(
      `select tributary.cost_nanos(c.input, c.output, c.input_price, c.output_price)::text as cost,
         tributary.charge_nanos(c.input, c.cached, c.output, c.input_price, c.cached_price, c.output_price,
           c.available)::text as charge,
         d.granted::text, d.nanos::text, d.affordable::text
       from rows from (json_to_recordset($1::json) as (input bigint, cached bigint, output bigint, input_price bigint,
           cached_price bigint, output_price bigint, available bigint, cap bigint, explicit boolean)) with ordinality
         as c(input, cached, output, input_price, cached_price, output_price, available, cap, explicit, place),
         tributary.decide_allowance(c.input, c.cap, c.explicit, 65536, c.available,
           greatest(c.input_price, c.cached_price), c.output_price) d
       order by c.place`,
      [JSON.stringify(asked)],
    );
    await client.end();
    const expected = cases.map(
      ({ available, cached, fitting, input, output, prices, requested }) => {
        const usage = {
          inputTokens: input,
          cachedInputTokens: cached,
          outputTokens: output,
          reasoningTokens: 0,
        };
        const order = { inputBound: input, requested, fitting, availableNanos: available };
        const decision = decideAllowance(order, prices);
        return {
          cost: costNanos(input, output, prices).toString(),
          charge: chargeNanos(usage, prices, available).toString(),
          granted: decision.granted ? String(decision.allowance) : "0",
          nanos: (decision.granted ? decision.reservedNanos : decision.neededNanos).toString(),
          affordable: decision.granted ? null : String(decision.affordable),
        };
      },
    );
    const seen = rows.map(({ affordable, granted, ...rest }) => ({
      ...rest,
      granted,
      // The pure function says it of refusals alone.
      affordable: granted === "0" ? affordable : null,
    }));
    expect(seen).toEqual(expected);
  });
});
