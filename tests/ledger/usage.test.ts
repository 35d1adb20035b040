import { readdirSync } from "node:fs";
import { getPriority } from "node:os";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { fillWeeks } from "../../src/ledger/migrations/week-sums.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openThreadedReports } from "../../src/ledger/postgres/threaded-reports.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { Row } from "../../src/ledger/row.ts";
import { noSums } from "../../src/ledger/usage/measures.ts";
import { pageUsage } from "../../src/ledger/usage/sum-usage.ts";
import { type UsageText, usageToJson } from "../../src/ledger/usage/usage-json.ts";
import type { UsageQuery } from "../../src/ledger/usage/usage-query.ts";
import { type RunStatement, writeManyReceipts, writtenAccount } from "../doubles/many-receipts.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { postgresTests } from "./postgres-server.ts";
import { openPostgresStatements, openSqliteStatements } from "./run-statement.ts";
import { defaultSettings, temporaryLedger } from "./support.ts";

// Sums of usage on both stores against a model that adds up receipts one by one, with nothing, some and all of it kept.

const at = (text: string): number => Date.parse(text);
// Clocks are put back in Berlin on the 25th at 01:00Z, and forward in Lord Howe by half an hour on the 3rd.
const sinceMs = at("2026-09-28T00:00:00Z");
const untilMs = at("2026-11-03T00:00:00Z");

interface Opened extends AsyncDisposable {
  readonly ledger: StoreLedger;
  readonly run: RunStatement;
}

async function openSqlite(): Promise<Opened> {
  await using opened = new AsyncDisposableStack();
  const { path } = opened.use(temporaryLedger());
  const ledger = opened.use(
    await openSqliteLedger(
      { ...defaultSettings, path },
      { now: () => untilMs, telemetry: { ledgerRetry: () => {} } },
    ),
  );
  const { run } = opened.use(openSqliteStatements(path));
  const owned = opened.move();
  return { ledger, run, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** As the store's own connections give it. */
function inWholeNumbers(row: Row): Row {
  const columns = Object.entries(row).map(([name, value]) => [
    name,
    typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : value,
  ]);
  return Object.fromEntries(columns) as Row;
}

async function openPostgres(url: string): Promise<Opened> {
  await using opened = new AsyncDisposableStack();
  const ledger = opened.use(await openPostgresLedger({ ...defaultSettings, url }, {}));
  const { run } = opened.use(await openPostgresStatements(url));
  const owned = opened.move();
  return { ledger, run, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const timezones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
];
const instant = fc.oneof(
  fc.integer({ min: sinceMs - 90_000_000, max: untilMs + 90_000_000 }),
  fc.integer({ min: 0, max: 36 * 96 }).map((quarters) => sinceMs + quarters * 900_000),
);
const aQuery = fc
  .record(
    {
      by: fc.constantFrom<UsageQuery["by"]>(
        ["day"],
        ["hour"],
        ["month"],
        ["account"],
        ["key"],
        ["format"],
        ["label"],
        ["day", "account"],
        ["month", "label"],
        ["day", "label"],
        ["hour", "format"],
        ["hour", "label"],
        ["account", "label"],
        ["format", "label"],
        ["key", "format"],
        ["key", "label"],
        ["month", "format"],
      ),
      accountIds: fc.constant([writtenAccount(0), writtenAccount(2)]),
      accountId: fc.option(fc.constantFrom(writtenAccount(0), writtenAccount(3))),
      keyId: fc.option(fc.constant("key_many10000b"), { freq: 1 }),
      format: fc.option(fc.constant("messages"), { freq: 1 }),
      sinceMs: fc.option(instant),
      untilMs: fc.option(instant),
      timezone: fc.constantFrom(...timezones),
    },
    { requiredKeys: ["by", "accountId", "keyId", "format", "sinceMs", "untilMs", "timezone"] },
  )
  .filter(
    (query) => query.sinceMs === null || query.untilMs === null || query.sinceMs < query.untilMs,
  )
  .map(({ accountIds, ...query }) =>
    query.accountId !== null || accountIds === undefined ? query : { ...query, accountIds },
  );

type Json = Readonly<Record<string, unknown>>;

/** What a query must answer, from the receipts one by one. */
function modelOf(query: UsageQuery, receipts: readonly Row[]): readonly Json[] {
  const format = new Intl.DateTimeFormat("en-CA", { timeZone: query.timezone });
  const groups = new Map<string, { row: Record<string, unknown>; receipts: Row[] }>();
  for (const receipt of receipts) {
    const endedMs = Number(receipt["resolved_at_ms"]);
    if (query.accountId !== null && receipt["account_id"] !== query.accountId) continue;
    if (query.accountIds?.includes(String(receipt["account_id"])) === false) continue;
    if (query.keyId !== null && receipt["key_id"] !== query.keyId) continue;
    if (query.format !== null && receipt["format"] !== query.format) continue;
    if (query.sinceMs !== null && endedMs < query.sinceMs) continue;
    if (query.untilMs !== null && endedMs >= query.untilMs) continue;
    const local = format.format(endedMs);
    const row: Record<string, unknown> = {};
    for (const by of query.by) {
      if (by === "hour") row[by] = `${new Date(endedMs).toISOString().slice(0, 13)}:00:00Z`;
      else if (by === "day") row[by] = local;
      else if (by === "month") row[by] = local.slice(0, 7);
      else row[by] = receipt[by === "format" || by === "label" ? by : `${by}_id`];
    }
    const name = JSON.stringify(row);
    const group = groups.get(name) ?? { row, receipts: [] };
    group.receipts.push(receipt);
    groups.set(name, group);
  }
  return [...groups.values()].map(({ receipts: its, row }) => {
    const sum = (column: string): number =>
      its.reduce((all, one) => all + Number(one[column] ?? 0), 0);
    return {
      ...row,
      requests: its.length,
      input_tokens: sum("input_tokens"),
      cached_input_tokens: sum("cached_input_tokens"),
      output_tokens: sum("output_tokens"),
      reasoning_tokens: sum("reasoning_tokens"),
      charged: (sum("charged_nanos") / 1e9).toFixed(9).replace(/\.?0+$/u, ""),
      completed: its.filter((one) => one["outcome"] === "completed").length,
      lease_lost: its.filter((one) => one["outcome"] === "lease-lost").length,
      slow: its.filter((one) => Number(one["first_output_ms"] ?? 0) >= 2_048).length,
    };
  });
}

const stores = [
  ["SQLite", () => openSqlite(), true, 25],
  [
    "PostgreSQL",
    async () => {
      const server = await openPostgresDatabases();
      const opened = await openPostgres(await server.createDatabase("usage"));
      return {
        ...opened,
        async [Symbol.asyncDispose]() {
          await opened[Symbol.asyncDispose]();
          await server[Symbol.asyncDispose]();
        },
      };
    },
    postgresTests,
    8,
  ],
] as const;

describe.each(stores.filter(([, , isThere]) => isThere))(
  "usage on %s",
  (_name, open, _isThere, numRuns) => {
    let opened: Opened;
    let receipts: readonly Row[];
    beforeAll(async () => {
      opened = await open();
      await writeManyReceipts(opened.run, { receipts: 800, accounts: 5, sinceMs, untilMs });
      receipts = await readReceipts();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    function readReceipts(): Promise<readonly Row[]> {
      return opened.run("select * from tributary.reservation where state <> 'open'");
    }

    async function keep(steps: number): Promise<void> {
      for (let step = 0; step < steps; step += 1) {
        const { accountIds } = await opened.ledger.findUnsummed("");
        if (accountIds.length === 0) return;
        expect((await opened.ledger.keepUsage(accountIds)).mine).toBe(true);
      }
    }

    async function ensureAsModel(query: UsageQuery): Promise<void> {
      const rows = await opened.ledger.sumUsage(query);
      const answer = rows.map((row) => {
        const json = usageToJson(row, query.by);
        const slow = row.sums.buckets.first_output.slice(8).reduce((all, one) => all + one, 0);
        const { completed, lease_lost, requests } = json;
        const names = query.by.map((by) => [by, json[by]]);
        const counted = [
          "input_tokens",
          "cached_input_tokens",
          "output_tokens",
          "reasoning_tokens",
        ];
        const figures = [...counted, "charged"].map((name) => [name, json[name]]);
        return {
          ...Object.fromEntries([...names, ...figures]),
          requests,
          completed,
          lease_lost,
          slow,
        };
      });
      const byText = (one: unknown, other: unknown): number =>
        JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
      const sorted = (all: readonly Json[]): readonly Json[] =>
        all.map((row) => Object.fromEntries(Object.entries(row).toSorted(byText))).toSorted(byText);
      expect(sorted(answer)).toEqual(sorted(modelOf(query, receipts)));
    }

    it.each([
      ["nothing", 0],
      ["some", 4],
      ["all", 100],
    ])("is what the receipts come to with %s of it kept", async (_kept, steps) => {
      await keep(steps);
      await fc.assert(fc.asyncProperty(aQuery, ensureAsModel), { numRuns });
      expect((await opened.ledger.verify([])).problems).toEqual([]);
    });

    it.each(timezones)("of all accounts reads no more than a row a day in %s", async (timezone) => {
      await keep(100);
      const longer = { sinceMs: sinceMs - 5 * 86_400_000, untilMs: untilMs + 5 * 86_400_000 };
      const query = { ...everything, ...longer, by: ["day"], timezone } as const;
      await ensureAsModel(query);
      const steps = pageUsage(query);
      let read = 0;
      for (let step = steps.next(); step.done !== true;) {
        if (step.value.type !== "statement") throw new Error(step.value.type);
        const { sql, values } = step.value;
        const rows = await opened.run(sql, ...values);
        if (sql.includes("usage_all")) read += rows.length;
        step = steps.next(rows.map(inWholeNumbers));
      }
      expect(read).toBeGreaterThan(20);
      // One more on each day on which clocks are changed.
      expect(read).toBeLessThanOrEqual(48);
    });

    it("has weeks with labels where a ledger kept the rest before there were any", async () => {
      await keep(100);
      await opened.run("delete from tributary.usage_week");
      expect((await opened.ledger.verify([])).ok).toBe(false);
      await opened.run(fillWeeks("tributary."));
      expect((await opened.ledger.verify([])).problems).toEqual([]);
    });

    it("has a page for each few rows, which end with whole times and come to the same", async () => {
      for (const [rowsMax, by] of [
        [40, ["day", "account"]],
        [120, ["hour", "key"]],
        [40, ["month", "label"]],
      ] as const) {
        const query = { ...everything, by, timezone: "Europe/Berlin" };
        const all = await opened.ledger.sumUsage(query);
        const lines: string[] = [];
        let sinceMs: number | null = null;
        let pages = 0;
        do {
          const form = "application/json";
          const page: UsageText = await opened.ledger.printUsage({
            ...query,
            sinceMs,
            rowsMax,
            form,
          });
          const { data, next_cursor } = JSON.parse(new TextDecoder().decode(page.text)) as {
            data: object[];
            next_cursor: string | null;
          };
          expect(data.length).toBeLessThanOrEqual(rowsMax);
          expect(next_cursor === null).toBe(page.nextMs === null);
          lines.push(...data.map((row) => JSON.stringify(row)));
          sinceMs = page.nextMs;
          pages += 1;
        } while (sinceMs !== null);
        expect(lines).toEqual(all.map((row) => JSON.stringify(usageToJson(row, by))));
        expect(pages).toBeGreaterThan(by[0] === "month" ? 0 : 4);
      }
      const narrow = { ...everything, by: ["label"], rowsMax: 3 } as const;
      await expect(opened.ledger.sumUsage(narrow)).rejects.toMatchObject({ param: "by" });
    });

    it("has what ended in an hour that was added up before, whatever the clock said", async () => {
      const { id } = await opened.ledger.createAccount("late", 10n ** 12n);
      const { secret } = await opened.ledger.createKey(id, "late");
      const query = { ...everything, by: ["account"], accountId: id } as const;
      for (let round = 1; round <= 3; round += 1) {
        const order = orderOf(await opened.ledger.authorize(secret, false));
        await opened.ledger.admit(order);
        await opened.ledger.settle(settlementOf(order));
        await keep(100);
        expect((await opened.ledger.findUnsummed("")).accountIds).toEqual([]);
        expect(await opened.ledger.sumUsage(query)).toMatchObject([{ sums: { requests: round } }]);
      }
      // What a clock that was an hour behind has written.
      const order = orderOf(await opened.ledger.authorize(secret, false));
      await opened.ledger.admit(order);
      await opened.ledger.settle(settlementOf(order));
      await opened.run(
        "update tributary.reservation set resolved_at_ms = resolved_at_ms - 3600000 where request_id = $1",
        order.requestId,
      );
      expect(await opened.ledger.sumUsage(query)).toMatchObject([{ sums: { requests: 4 } }]);
      await keep(100);
      expect(await opened.ledger.sumUsage(query)).toMatchObject([{ sums: { requests: 4 } }]);
      const { problems } = await opened.ledger.verify([]);
      expect(problems.filter(({ code }) => code === "usage-differs")).toEqual([]);
      await opened.run(
        "update tributary.reservation set resolved_at_ms = resolved_at_ms + 3600000 where request_id = $1",
        order.requestId,
      );
      const found = await opened.ledger.verify([]);
      expect(found.problems.map(({ account, code }) => [account, code])).toContainEqual([
        id,
        "usage-differs",
      ]);
    });

    it.each([
      [
        "a figure",
        "update tributary.usage_day set output_tokens = output_tokens + 1 where begin_ms = (select min(begin_ms) from tributary.usage_day)",
        "usage_day is not",
      ],
      [
        "a bucket",
        "update tributary.usage_quarter set total_9 = 5 where total_9 = 1 and begin_ms % 86400000 = 0",
        "usage_quarter is not",
      ],
      [
        "a row too few",
        "delete from tributary.usage_label where label = 'user 3'",
        "usage_label lacks a row",
      ],
      [
        "a label's key",
        "update tributary.usage_week set requests = requests + 1 where label = 'user 3' and begin_ms = (select min(begin_ms) from tributary.usage_week)",
        "usage_week is not",
      ],
      [
        "a row too many",
        "update tributary.usage_day set format = format || 'x' where begin_ms = (select min(begin_ms) from tributary.usage_day)",
        "usage_day has a row of no receipt",
      ],
      [
        "a figure of all accounts together",
        "update tributary.usage_all set total_9 = coalesce(total_9, 0) + 1 where begin_ms = (select min(begin_ms) from tributary.usage_all)",
        "usage_all is not",
      ],
      [
        "a row of all accounts too few",
        "delete from tributary.usage_all where begin_ms = (select min(begin_ms) from tributary.usage_all)",
        "usage_all lacks a row",
      ],
      [
        "how far it goes",
        "update tributary.usage_progress set summed_sequence = summed_sequence + 1000000",
        "entry that the account does not have",
      ],
    ])("is verified: %s", async (_what, damage, words) => {
      for (const table of ["progress", "quarter", "day", "label", "week", "all"])
        await opened.run(`delete from tributary.usage_${table}`);
      await keep(100);
      expect((await opened.ledger.verify([])).ok).toBe(true);
      await opened.run(damage);
      const { ok, problems } = await opened.ledger.verify([]);
      expect(ok).toBe(false);
      expect(problems[0]).toMatchObject({ code: "usage-differs" });
      expect(problems.map(({ message }) => message).join("\n")).toContain(words);
    });
  },
);

const everything: UsageQuery = {
  by: ["day"],
  accountId: null,
  keyId: null,
  format: null,
  sinceMs: null,
  untilMs: null,
  timezone: "UTC",
};

it.runIf(process.platform === "linux").each(stores.filter(([, , isThere]) => isThere))(
  "%s is asked by a thread that lets streams go first",
  async (_name, open) => {
    const threads = (): readonly string[] => readdirSync("/proc/self/task");
    await using opened = await open();
    const before = threads();
    await opened.ledger.printUsage({ ...everything, form: "application/json" });
    const begun = threads().filter((id) => !before.includes(id));
    expect(begun.map((id) => getPriority(Number(id)))).toContain(Math.min(getPriority() + 10, 19));
  },
);

it.skipIf(!postgresTests)(
  "a fault of the server is told as it was, also by the thread of reports",
  async () => {
    await using server = await openPostgresDatabases();
    await using reports = openThreadedReports({ url: await server.createDatabase("empty") });
    const asked = reports.printUsage({ ...everything, form: "application/json" });
    await expect(asked).rejects.toMatchObject({ kind: "bug", reason: null, code: "3F000" });
  },
);

it("percentiles are those of the bucket, and guessed within it", () => {
  const sums = noSums();
  sums.buckets.total[4] = 100;
  expect(usageToJson({ sums }, [])).toMatchObject({
    total_p50_ms: 192,
    total_p95_ms: 250,
    first_output_p50_ms: null,
  });
});
