import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EventStage, openPostgresStages, openSqliteStage } from "./event-stage.ts";
import { postgresTests } from "./postgres-server.ts";

// Events are written by the database itself, in the statement that moves an account, whatever moves it.

const outbox =
  "select type, account_id, entry, facts_json from outbox where type <> 'account.credited' order by sequence";

async function facts(stage: EventStage): Promise<readonly unknown[]> {
  const rows = await stage.query(outbox);
  return rows.map((row) => [
    row["type"],
    Number(row["entry"]),
    JSON.parse(String(row["facts_json"])),
  ]);
}

function low(entry: number, balance: string, at = "500"): unknown {
  return ["account.low_balance", entry, { balance_nanos: balance, low_balance_at_nanos: at }];
}

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
])("$name", ({ name, runs }) => {
  describe.runIf(runs)("the outbox", () => {
    let stages: Awaited<ReturnType<typeof openPostgresStages>> | null = null;
    const open = (): Promise<EventStage> => stages?.open() ?? openSqliteStage();
    beforeAll(async () => {
      if (name === "PostgreSQL") stages = await openPostgresStages();
    });
    afterAll(() => stages?.[Symbol.asyncDispose]());

    test("has a low balance once, and again only after the balance rose above", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 1_000n);
      await ledger.changeAccount(id, { lowBalanceNanos: 500n });
      await ledger.creditAccount(id, -500n, null);
      expect(await facts(stage), "at the balance that is called low").toEqual([]);
      await ledger.creditAccount(id, -1n, null);
      expect(await facts(stage)).toEqual([low(3, "499")]);
      await ledger.creditAccount(id, 1n, null);
      await ledger.creditAccount(id, -2n, null);
      expect(await facts(stage), "it has not been above").toEqual([low(3, "499")]);
      await ledger.creditAccount(id, 3n, null);
      await ledger.creditAccount(id, -100n, null);
      expect(await facts(stage)).toEqual([low(3, "499"), low(7, "401")]);
    });

    test("has each credit, with its entry, and none of a change that failed", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 7n);
      await ledger.creditAccount(id, 5n, null);
      await expect(ledger.creditAccount(id, -100n, null)).rejects.toThrow("can be taken back");
      const rows = await stage.query(
        "select type, entry, facts_json from outbox order by sequence",
      );
      expect(
        rows.map((row) => [
          row["type"],
          Number(row["entry"]),
          JSON.parse(String(row["facts_json"])),
        ]),
      ).toEqual([
        ["account.credited", 1, { amount_nanos: "7", balance_nanos: "7" }],
        ["account.credited", 2, { amount_nanos: "5", balance_nanos: "12" }],
      ]);
    });

    test("has nothing where the balance is below already as it is called low, until it rose", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 400n);
      const { version } = await ledger.changeAccount(id, { lowBalanceNanos: 500n });
      expect(version).toBe(2);
      await ledger.creditAccount(id, -1n, null);
      expect(await facts(stage)).toEqual([]);
      await ledger.creditAccount(id, 200n, null);
      await ledger.changeAccount(id, { name: "other" });
      await ledger.creditAccount(id, -200n, null);
      expect(await facts(stage)).toEqual([low(4, "399")]);
      await ledger.changeAccount(id, { name: "another" });
      await ledger.creditAccount(id, -1n, null);
      expect(await facts(stage), "a change of something else tells nothing anew").toHaveLength(1);
      await ledger.changeAccount(id, { lowBalanceNanos: 300n });
      await ledger.creditAccount(id, -100n, null);
      expect(await facts(stage)).toHaveLength(2);
      await ledger.changeAccount(id, { lowBalanceNanos: null });
      await ledger.creditAccount(id, 300n, null);
      await ledger.creditAccount(id, -300n, null);
      expect(await facts(stage)).toHaveLength(2);
    });

    test("has a budget that is spent to 80 and to 100 per cent, once a period", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 1_000n);
      await ledger.createKey(id, "till");
      const spend = (sql: string) => stage.query(`update api_key set ${sql}`);
      const percents = async (): Promise<readonly unknown[]> => {
        const rows = await stage.query(
          "select facts_json from outbox where type = 'budget.reached' order by sequence",
        );
        return rows.map(
          (row) => (JSON.parse(String(row["facts_json"])) as { percent: number }).percent,
        );
      };
      await spend(
        "budget_nanos = 11, budget_period = 'day', budget_timezone = 'UTC', budget_begin_ms = 5, budget_end_ms = 9, budget_spent_nanos = 0",
      );
      await spend("budget_spent_nanos = 8");
      expect(await percents(), "8 of 11 are less than 80 %").toEqual([]);
      await spend("budget_spent_nanos = 9");
      await spend("budget_spent_nanos = 10");
      expect(await percents()).toEqual([80]);
      await spend("budget_spent_nanos = 11");
      await spend("budget_spent_nanos = 12");
      expect(await percents()).toEqual([80, 100]);
      await spend("budget_begin_ms = 9, budget_end_ms = 13, budget_spent_nanos = 0");
      await spend("budget_spent_nanos = 11");
      expect(await percents(), "another period, at once").toEqual([80, 100, 80, 100]);
      await spend("budget_nanos = 20, budget_spent_nanos = 11");
      await spend("budget_spent_nanos = 16");
      expect(await percents(), "another budget").toEqual([80, 100, 80, 100, 80]);
      await spend("budget_nanos = 18, budget_spent_nanos = 16");
      expect(await percents(), "one that is spent so far when it is set").toEqual([
        80, 100, 80, 100, 80, 80,
      ]);
      await spend(
        "budget_nanos = 1000000000000000000, budget_spent_nanos = 0, budget_period = 'total', budget_end_ms = null",
      );
      await spend("budget_spent_nanos = 799999999999999999");
      expect(await percents()).toHaveLength(6);
      await spend("budget_spent_nanos = 800000000000000000");
      expect(await percents()).toHaveLength(7);
      await spend("budget_nanos = null, budget_period = null, budget_spent_nanos = 0");
      await spend("budget_spent_nanos = 5");
      expect(await percents()).toHaveLength(7);
      const [row] = await stage.query(
        "select account_id, entry, facts_json from outbox where type = 'budget.reached' order by sequence",
      );
      expect([
        row?.["account_id"],
        Number(row?.["entry"]),
        JSON.parse(String(row?.["facts_json"])),
      ]).toEqual([
        id,
        1,
        {
          percent: 80,
          budget_nanos: "11",
          spent_nanos: "9",
          period: "day",
          begins_at_ms: 5,
          ends_at_ms: 9,
        },
      ]);
    });

    test("has nothing of an account whose operator calls no balance low", async () => {
      await using stage = await open();
      const { id } = await stage.ledger.createAccount("shop", 1_000n);
      await stage.ledger.creditAccount(id, -1_000n, null);
      expect(await facts(stage)).toEqual([]);
    });
  });
});
