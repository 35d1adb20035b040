import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Statement } from "../../src/ledger/administration/statement.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { type EventStage, openPostgresStages, openSqliteStage } from "./event-stage.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { postgresTests } from "./postgres-server.ts";

// Statements of months, against the entries that they are of; on both stores.

const dayMs = 86_400_000;
const october = Date.UTC(2026, 9);
const november = Date.UTC(2026, 10);

/** A request that is charged 580,000 nanos: 500 tokens at 1,000 and 20 at 4,000. */
async function charge(ledger: StoreLedger, secret: string): Promise<string> {
  const order = orderOf(await ledger.authorize(secret, false));
  await ledger.admit(order);
  await ledger.settle(settlementOf(order));
  return order.requestId;
}

function sumsOf({ closingNanos, openingNanos, sums }: Statement): readonly bigint[] {
  const { chargedNanos, correctionsNanos, grantsNanos, refundsNanos, topUpsNanos } = sums;
  const moved = topUpsNanos + grantsNanos + refundsNanos + correctionsNanos - chargedNanos;
  return [openingNanos + moved, closingNanos];
}

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
])("$name", ({ name, runs }) => {
  describe.runIf(runs)("a statement", () => {
    let stages: Awaited<ReturnType<typeof openPostgresStages>> | null = null;
    const open = (): Promise<EventStage> => stages?.open() ?? openSqliteStage();
    beforeAll(async () => {
      if (name === "PostgreSQL") stages = await openPostgresStages();
    });
    afterAll(() => stages?.[Symbol.asyncDispose]());

    /** Two charges and a top-up late in October; a refund, a grant and a charge in November. */
    async function twoMonths(stage: EventStage): Promise<{ id: string; receipt: string }> {
      const { ledger } = stage;
      stage.later(october + 5 * dayMs - stage.nowMs());
      const { id } = await ledger.createAccount("shop", 10n ** 9n);
      const { secret } = await ledger.createKey(id, "web");
      const receipt = await charge(ledger, secret);
      stage.later(dayMs);
      await charge(ledger, secret);
      await charge(ledger, secret);
      // The last millisecond of October, and the first of November.
      stage.later(november - 1 - stage.nowMs());
      await ledger.creditAccount(id, 7n, { reference: "pi_1", note: "paid" });
      stage.later(1);
      await ledger.creditAccount(id, 80_000n, { kind: "refund", receipt });
      await ledger.creditAccount(id, 5n, { kind: "grant" });
      await ledger.creditAccount(id, -3n, { kind: "correction" });
      stage.later(2 * dayMs);
      await charge(ledger, secret);
      return { id, receipt };
    }

    test("says what the entries of its month add up to", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id, receipt } = await twoMonths(stage);
      const first = await ledger.readStatement(id, "2026-10");
      expect(first).toMatchObject({
        openingNanos: 0n,
        closingNanos: 10n ** 9n - 3n * 580_000n + 7n,
        sums: { topUpsNanos: 10n ** 9n + 7n, grantsNanos: 0n, chargedNanos: 3n * 580_000n },
        days: [
          { day: "2026-10-06", requests: 1, chargedNanos: 580_000n },
          { day: "2026-10-07", requests: 2, chargedNanos: 2n * 580_000n },
        ],
        creditsTotal: 2,
      });
      expect(first.credits.map(({ kind, reference }) => [kind, reference])).toEqual([
        ["credit", null],
        ["top_up", "pi_1"],
      ]);
      const second = await ledger.readStatement(id, "2026-11");
      const account = await ledger.showAccount(id);
      expect(second.openingNanos).toBe(first.closingNanos);
      expect(second.closingNanos).toBe(account.balanceNanos);
      expect(second.head).toBe(account.head);
      expect(second.sums).toEqual({
        topUpsNanos: 0n,
        grantsNanos: 5n,
        refundsNanos: 80_000n,
        correctionsNanos: -3n,
        chargedNanos: 580_000n,
      });
      expect(second.credits[0]).toMatchObject({ kind: "refund", receipt, amountNanos: 80_000n });
      for (const statement of [first, second]) {
        const [wanted, closing] = sumsOf(statement);
        expect(closing).toBe(wanted);
        // The head is one that `verify` takes.
        expect((await ledger.verify([statement.head ?? ""])).problems).toEqual([]);
      }
      const entries = await ledger.pageEntries({ accountId: id, before: null, rowsMax: 100 });
      const inMonth = entries.filter(({ atMs }) => atMs >= october && atMs < november);
      expect(inMonth.reduce((sum, entry) => sum + entry.balanceDeltaNanos, 0n)).toBe(
        first.closingNanos - first.openingNanos,
      );
    });

    test("of a month in which nothing moved is empty", async () => {
      await using stage = await open();
      const { id } = await twoMonths(stage);
      const before = await stage.ledger.readStatement(id, "2026-09");
      expect(before).toMatchObject({ openingNanos: 0n, closingNanos: 0n, days: [], head: null });
      const after = await stage.ledger.readStatement(id, "2026-12");
      expect(after.openingNanos).toBe((await stage.ledger.showAccount(id)).balanceNanos);
      expect(after.closingNanos).toBe(after.openingNanos);
    });

    test("is refused where a checkpoint may have taken entries of the month", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await twoMonths(stage);
      const whole = await ledger.readStatement(id, "2026-11");
      await ledger.checkpoint(id, october + 7 * dayMs);
      await expect(ledger.readStatement(id, "2026-10")).rejects.toMatchObject({
        code: "not_possible",
      });
      const again = await ledger.readStatement(id, "2026-11");
      expect({ ...again, account: null, head: null, closingNanos: 0n }).toEqual({
        ...whole,
        account: null,
        head: null,
        closingNanos: 0n,
      });
    });

    test("of what is no month or no account is refused", async () => {
      await using stage = await open();
      const { id } = await stage.ledger.createAccount("shop", 0n);
      for (const month of ["2026-13", "2026-1", "26-10", "2026-10-01", ""])
        await expect(stage.ledger.readStatement(id, month)).rejects.toMatchObject({
          code: "invalid_value",
          param: "month",
        });
      await expect(stage.ledger.readStatement("acct_none", "2026-10")).rejects.toMatchObject({
        code: "not_found",
      });
    });
  });
});
