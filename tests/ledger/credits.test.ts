import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { type EventStage, openPostgresStages, openSqliteStage } from "./event-stage.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { postgresTests } from "./postgres-server.ts";
import { codeOf } from "./support.ts";

// Credit that operators move: references, refunds, and what is left of both behind a checkpoint; on both stores.

const credit = 10n ** 12n;

function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

/** A request that was charged 580,000 nanos: 500 tokens at 1,000 and 20 at 4,000. */
async function charge(ledger: StoreLedger, secret: string): Promise<string> {
  const order = orderOf(await ledger.authorize(secret, false));
  await ledger.admit(order);
  await ledger.settle(settlementOf(order));
  return order.requestId;
}

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
])("$name", ({ name, runs }) => {
  describe.runIf(runs)("credit", () => {
    let stages: Awaited<ReturnType<typeof openPostgresStages>> | null = null;
    const open = (): Promise<EventStage> => stages?.open() ?? openSqliteStage();
    beforeAll(async () => {
      if (name === "PostgreSQL") stages = await openPostgresStages();
    });
    afterAll(() => stages?.[Symbol.asyncDispose]());

    test("under a reference moves once, and a repeat answers the first entry", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      const facts = { reference: "pi_3Pq", note: "paid" };
      const first = await ledger.creditAccount(id, 25n, facts);
      expect(first.entry).toMatchObject({
        kind: "top_up",
        reference: "pi_3Pq",
        balanceDeltaNanos: 25n,
        balanceNanos: 25n,
      });
      const [entry] = await ledger.pageEntries({ accountId: id, before: null, rowsMax: 1 });
      expect(entry).toEqual(first.entry);
      // Another note is not another movement.
      const again = await ledger.creditAccount(id, 25n, { reference: "pi_3Pq", note: "again" });
      expect(again).toEqual(first);
      for (const [amount, more] of [
        [26n, {}],
        [-25n, {}],
        [25n, { kind: "grant" }],
      ] as const)
        expect(await refusal(ledger.creditAccount(id, amount, { ...facts, ...more }))).toBe(
          "reference_conflict",
        );
      // References are of an account.
      const other = await ledger.createAccount("other", 0n);
      expect((await ledger.creditAccount(other.id, 3n, facts)).account.balanceNanos).toBe(3n);
      const log = await ledger.listAudit({ ...everything, target: id });
      expect(log.map(({ action }) => action)).toEqual(["account.credit", "account.create"]);
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    test("of many at once under one reference moves once", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => ledger.creditAccount(id, 5n, { reference: "one" })),
      );
      expect(new Set(answers.map(({ entry }) => entry.hash)).size).toBe(1);
      expect((await ledger.showAccount(id)).balanceNanos).toBe(5n);
    });

    test("its references outlive a checkpoint", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      const { secret } = await ledger.createKey(id, "web");
      const first = await ledger.creditAccount(id, credit, { reference: "pi_1" });
      const receipt = await charge(ledger, secret);
      const refund = await ledger.creditAccount(id, 80_000n, { kind: "refund", receipt });
      const { removed } = await ledger.checkpoint(id, Date.now() + 86_400_000);
      expect(removed).toBe(refund.entry.sequence);
      const again = await ledger.creditAccount(id, credit, { reference: "pi_1" });
      expect(again.entry).toEqual(first.entry);
      expect(await refusal(ledger.creditAccount(id, 1n, { reference: "pi_1" }))).toBe(
        "reference_conflict",
      );
      // What was refunded is not forgotten either.
      expect(await refusal(ledger.creditAccount(id, 500_001n, { kind: "refund", receipt }))).toBe(
        "not_possible",
      );
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    test("refunds of a receipt never pass its charge", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", credit);
      const { secret } = await ledger.createKey(id, "web");
      const receipt = await charge(ledger, secret);
      const refund = (amount: bigint, more: object = {}): Promise<unknown> =>
        ledger.creditAccount(id, amount, { kind: "refund", receipt, ...more });
      const shown = async (): Promise<bigint> => (await ledger.showReceipt(receipt)).refundedNanos;
      expect(await refusal(refund(580_001n))).toBe("not_possible");
      expect(await refusal(refund(-1n))).toBe("not_possible");
      expect(await refusal(refund(1n, { receipt: "req_none" }))).toBe("not_found");
      expect(await refusal(refund(1n, { kind: "top_up" }))).toBe("invalid_value");
      expect(await shown()).toBe(0n);
      const at = await Promise.all(Array.from({ length: 7 }, () => refusal(refund(100_000n))));
      expect(at.filter((code) => code === "done")).toHaveLength(5);
      expect(await shown()).toBe(500_000n);
      await refund(80_000n);
      await refund(-30_000n);
      expect(await shown()).toBe(550_000n);
      expect(await refusal(refund(30_001n))).toBe("not_possible");
      const other = await ledger.createAccount("other", credit);
      const foreign = ledger.creditAccount(other.id, 1n, { kind: "refund", receipt });
      expect(await refusal(foreign)).toBe("not_found");
      expect((await ledger.showAccount(id)).balanceNanos).toBe(credit - 580_000n + 550_000n);
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    test("under a reference for one receipt is no movement for another", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", credit);
      const { secret } = await ledger.createKey(id, "web");
      const receipts = [await charge(ledger, secret), await charge(ledger, secret)];
      const [first, second] = receipts.map(
        (receipt) => () =>
          refusal(ledger.creditAccount(id, 100n, { kind: "refund", receipt, reference: "rf_1" })),
      );
      expect([await first?.(), await first?.(), await second?.()]).toEqual([
        "done",
        "done",
        "reference_conflict",
      ]);
    });

    test("that requests hold is not taken back", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", credit);
      const { secret } = await ledger.createKey(id, "web");
      await ledger.admit(orderOf(await ledger.authorize(secret, false)));
      const { balanceNanos, heldNanos } = await ledger.showAccount(id);
      expect(heldNanos).toBeGreaterThan(0n);
      const takeBack = (amount: bigint): Promise<unknown> =>
        refusal(ledger.creditAccount(id, -amount, {}));
      expect(await takeBack(balanceNanos - heldNanos + 1n)).toBe("not_possible");
      expect(await takeBack(balanceNanos - heldNanos)).toBe("done");
    });

    test("of a request that runs is not refunded", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", credit);
      const { secret } = await ledger.createKey(id, "web");
      const order = orderOf(await ledger.authorize(secret, false));
      await ledger.admit(order);
      const facts = { kind: "refund", receipt: order.requestId } as const;
      const running = ledger.creditAccount(id, 1n, facts);
      await expect(running).rejects.toMatchObject({ code: "not_possible", param: "receipt" });
    });

    test("with a reference that no line can hold is refused", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      for (const reference of ["", "a\nb", "x".repeat(201)]) {
        const wrong = ledger.creditAccount(id, 1n, { reference });
        await expect(wrong).rejects.toMatchObject({ code: "invalid_value", param: "reference" });
      }
    });

    test("under a reference of a grant is refused, and the grant of the period is paid", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      const reference = "grant:1970-01-01T00:00:00.000Z";
      const wrong = ledger.creditAccount(id, 1n, { reference, kind: "grant" });
      await expect(wrong).rejects.toMatchObject({ code: "invalid_value", param: "reference" });
      await ledger.changeAccount(id, { grant: { amountNanos: 5n, every: "day" } });
      expect((await ledger.showAccount(id)).balanceNanos).toBe(5n);
    });

    test("of grants that is not what the entries leave is found, also behind a checkpoint", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", credit);
      const { secret } = await ledger.createKey(id, "web");
      const set = async (nanos: bigint): Promise<readonly string[]> => {
        await stage.query(
          `update account set grant_left_nanos = ${String(nanos)} where id = '${id}'`,
        );
        return (await ledger.verify([])).problems.map(({ code, account }) => `${code} ${account}`);
      };
      await ledger.changeAccount(id, { grant: { amountNanos: 600_000n, every: "day" } });
      await charge(ledger, secret);
      // Of 600,000 a request has taken 580,000.
      expect((await ledger.showAccount(id)).grantLeftNanos).toBe(20_000n);
      expect(await set(20_001n)).toEqual([`grant-differs ${id}`]);
      expect(await set(19_999n)).toEqual([`grant-differs ${id}`]);
      expect(await set(20_000n)).toEqual([]);
      stage.later(1);
      await ledger.checkpoint(id, stage.nowMs());
      // What the checkpoint stands for says no more than that it was a part of the balance.
      expect(await set(credit + 20_001n)).toEqual([`grant-differs ${id}`]);
      expect(await set(20_000n)).toEqual([]);
      await ledger.creditAccount(id, -credit, { kind: "correction" });
      expect((await ledger.showAccount(id)).grantLeftNanos).toBe(0n);
      expect(await set(20_001n)).toEqual([`grant-differs ${id}`]);
      expect(await set(0n)).toEqual([]);
    });

    test.runIf(name === "SQLite")("of grants is spent by a version that knows none", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 10n);
      await ledger.changeAccount(id, { grant: { amountNanos: 5n, every: "day" } });
      // Versions without grants change a balance so.
      const spend = (nanos: number): Promise<unknown> =>
        stage.query(`update account set balance_nanos = balance_nanos - ${String(nanos)}`);
      await spend(2);
      expect((await ledger.showAccount(id)).grantLeftNanos).toBe(3n);
      await spend(4);
      expect((await ledger.showAccount(id)).grantLeftNanos).toBe(0n);
    });

    test("that was kept is never changed, also not by hand", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      await ledger.creditAccount(id, 1n, { reference: "one" });
      for (const sql of ["update kept_credit set amount_nanos = 2", "delete from kept_credit"])
        await expect(stage.query(sql)).rejects.toThrow(/never (changed|removed)/);
    });
  });
});

const everything = {
  actor: null,
  action: null,
  target: null,
  sinceMs: null,
  untilMs: null,
  before: null,
  rowsMax: 100,
};
