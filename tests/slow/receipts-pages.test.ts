import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { describe, expect, it } from "vitest";
import { writeLedger } from "../../bench/many-receipts.ts";
import { pageReceipts, type ReceiptQuery } from "../../src/ledger/administration/lists.ts";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { temporaryLedger } from "../ledger/support.ts";

// Of 200,000 receipts each page reads about as many as it has, wherever it begins.

const untilMs = Date.UTC(2026, 0, 1);
const receipts = 200_000;
const many = { receipts, accounts: 40, sinceMs: untilMs - 365 * 86_400_000, untilMs };
const rowsMax = 50;
const any: ReceiptQuery = {
  accountId: null,
  keyId: null,
  state: null,
  outcome: null,
  format: null,
  label: null,
  sinceMs: null,
  untilMs: null,
  endedSinceMs: null,
  endedUntilMs: null,
  chargedAtLeastNanos: null,
  after: null,
  rowsMax,
};
const middleMs = untilMs - 180 * 86_400_000;
const pages: readonly (readonly [name: string, asked: Partial<ReceiptQuery>])[] = [
  ["the newest", {}],
  ["behind another page", { after: { atMs: middleMs, id: "req_many100100000" } }],
  ["of a time", { sinceMs: middleMs - 86_400_000, untilMs: middleMs }],
  ["of what ended in an hour", { endedSinceMs: middleMs - 3_600_000, endedUntilMs: middleMs }],
  ["of what ended in one way", { outcome: "completed" }],
  ["of what runs", { state: "open" }],
  ["of the account that has most", { accountId: "acct_many10000" }],
];

/** The statement of a page, in a store's own words. */
function statementOf(asked: Partial<ReceiptQuery>, inWords: (sql: string) => string) {
  const { value } = pageReceipts({ ...any, ...asked }).next();
  if (!("type" in value) || value.type !== "statement") throw new Error("a page asks once");
  return { sql: inWords(value.sql), values: value.values };
}

it("on SQLite", async () => {
  using ledger = temporaryLedger();
  await writeLedger(`sqlite:${ledger.path}`, many);
  using database = new DatabaseSync(ledger.path);
  const plain = (sql: string): string =>
    sql.replaceAll("tributary.", "").replaceAll(/\$(\d+)/gu, "?$1");
  const plans = pages.map(([name, asked]) => {
    const { sql, values } = statementOf(asked, plain);
    const rows = database.prepare(`explain query plan ${sql}`).all(...values);
    return [name, ...rows.map(({ detail }) => String(detail))].join(": ");
  });
  const byTime = "reservation_admitted";
  const sorted = "USE TEMP B-TREE FOR LAST TERM OF ORDER BY";
  expect(plans).toEqual([
    `the newest: SEARCH reservation USING INDEX ${byTime} (admitted_at_ms<?): ${sorted}`,
    `behind another page: SEARCH reservation USING INDEX ${byTime} (admitted_at_ms<?): ${sorted}`,
    `of a time: SEARCH reservation USING INDEX ${byTime} (admitted_at_ms>? AND admitted_at_ms<?): ${sorted}`,
    "of what ended in an hour: SEARCH reservation USING INDEX reservation_resolved (account_id=? AND resolved_at_ms>? AND resolved_at_ms<?): USING INDEX sqlite_autoindex_account_1 FOR IN-OPERATOR: USE TEMP B-TREE FOR ORDER BY",
    `of what ended in one way: SEARCH reservation USING INDEX ${byTime} (admitted_at_ms<?): ${sorted}`,
    "of what runs: SCAN reservation USING INDEX reservation_lease: USE TEMP B-TREE FOR ORDER BY",
    `of the account that has most: SEARCH reservation USING INDEX reservation_account (account_id=? AND admitted_at_ms<?): ${sorted}`,
  ]);
});

interface Plan {
  readonly "Actual Rows": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** How many rows the leaves of a plan have read. */
function rowsRead(plan: Plan): number {
  const { Plans = [] } = plan;
  if (Plans.length === 0) return plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0);
  return Plans.reduce((sum, part) => sum + rowsRead(part), 0);
}

describe.runIf(postgresTests)("on PostgreSQL", () => {
  it("reads about as many rows as it answers", async () => {
    await using server = await startPostgres();
    const url = await server.createDatabase("pages");
    await writeLedger(url, many);
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      for (const [name, asked] of pages) {
        const { sql, values } = statementOf(asked, (text) => text);
        const { rows } = await client.query<{ "QUERY PLAN": readonly { Plan: Plan }[] }>(
          `explain (analyze, format json) ${sql}`,
          [...values],
        );
        const [found] = rows[0]?.["QUERY PLAN"] ?? [];
        if (found === undefined) throw new Error("no plan");
        // The account that has most has a tenth of all.
        expect([name, rowsRead(found.Plan) < 20 * rowsMax]).toEqual([name, true]);
      }
    } finally {
      await client.end();
    }
  });
});
