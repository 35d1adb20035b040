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
      await stage.query(`update account set low_balance_nanos = 500 where id = '${id}'`);
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

    test("has nothing of an account whose operator calls no balance low", async () => {
      await using stage = await open();
      const { id } = await stage.ledger.createAccount("shop", 1_000n);
      await stage.ledger.creditAccount(id, -1_000n, null);
      expect(await facts(stage)).toEqual([]);
    });
  });
});
