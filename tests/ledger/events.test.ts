import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventToJson } from "../../src/ledger/event-record.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { DueDelivery } from "../../src/ledger/webhook.ts";
import { limits } from "../../src/limits.ts";
import { type EventStage, openPostgresStages, openSqliteStage } from "./event-stage.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { postgresTests } from "./postgres-server.ts";
import { codeOf, openTill, run } from "./support.ts";
import { openNewStore } from "./made-ledger.ts";

// What has happened, in its order, and its deliveries, in both stores.

const hook = {
  url: "https://shop.example/events",
  description: "",
  types: null,
  status: "active",
} as const;
const all = { after: 0, accountId: null, type: null, rowsMax: 100 };

async function told(ledger: StoreLedger, after = 0): Promise<readonly unknown[]> {
  const { rows } = await ledger.pageEvents({ ...all, after });
  return rows.map(({ accountId, facts, type }) => [type, accountId, facts]);
}

async function due(ledger: StoreLedger, holder = "one"): Promise<readonly DueDelivery[]> {
  return (await ledger.takeDesk(holder))?.due ?? [];
}

function tried({ event, tries, webhookId }: DueDelivery, delivered: boolean) {
  const error = delivered ? null : "answered 500";
  const statusCode = delivered ? 204 : 500;
  const { position } = event;
  return { webhookId, position, tries, delivered, statusCode, error, durationMs: 3 };
}

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
])("$name", ({ name, runs }) => {
  describe.runIf(runs)("events", () => {
    let stages: Awaited<ReturnType<typeof openPostgresStages>> | null = null;
    const open = (): Promise<EventStage> => stages?.open() ?? openSqliteStage();
    beforeAll(async () => {
      if (name === "PostgreSQL") stages = await openPostgresStages();
    });
    afterAll(() => stages?.[Symbol.asyncDispose]());

    test("are given out in order, with the time and kind of the entry that caused them", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const shop = await ledger.createAccount("shop", 1_500_000_000n);
      stage.later(5);
      await ledger.creditAccount(shop.id, 1n, null);
      stage.later(5_000);
      expect(await told(ledger), "not yet given out").toEqual([]);
      await ledger.takeDesk("one");
      const { rows } = await ledger.pageEvents(all);
      expect(rows.map(eventToJson)).toEqual([
        {
          id: expect.stringMatching(/^evt_[0-9A-Za-z]{24,}$/) as string,
          type: "account.credited",
          timestamp: "1970-01-01T00:16:40.000Z",
          data: {
            account: shop.id,
            amount: "1.5",
            balance: "1.5",
            entry: 1,
            kind: expect.any(String) as string,
            reference: null,
          },
        },
        {
          id: expect.stringMatching(/^evt_[0-9A-Za-z]{24,}$/) as string,
          type: "account.credited",
          timestamp: "1970-01-01T00:16:40.005Z",
          data: {
            account: shop.id,
            amount: "0.000000001",
            balance: "1.500000001",
            entry: 2,
            kind: "top_up",
            reference: null,
          },
        },
      ]);
      expect(rows.map(({ position }) => position)).toEqual([1, 2]);
      expect(new Set(rows.map(({ id }) => id)).size).toBe(2);
      expect(await told(ledger, 1)).toHaveLength(1);
      expect(await ledger.takeDesk("one"), "nothing is left to do").toBeNull();
    });

    test("of an exhausted account come once, and again after a credit", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const shop = await ledger.createAccount("shop", 2_000_000n);
      const key = await ledger.createKey(shop.id, "key");
      const ask = async (): Promise<string> => {
        const caller = await ledger.authorize(key.secret, false, true);
        return ledger.admit(orderOf(caller)).then(() => "admitted", codeOf);
      };
      const order = orderOf(await ledger.authorize(key.secret, false, true));
      await ledger.admit(order);
      expect(await ask()).toBe("insufficient_credit");
      expect(await ask()).toBe("insufficient_credit");
      await ledger.takeDesk("one");
      const exhausted = (needed: string, balance: string, held: string): unknown => [
        "account.exhausted",
        shop.id,
        { balance_nanos: balance, held_nanos: held, needed_nanos: needed },
      ];
      const held = exhausted("1400000", "2000000", "1400000");
      expect((await told(ledger)).slice(1)).toEqual([held]);
      // Before the body is read: the balance does not pay for the smallest request.
      await ledger.settle(settlementOf(order, [1_000, 100]));
      await ledger.creditAccount(shop.id, -600_000n, null);
      await ledger.creditAccount(shop.id, 1n, null);
      expect(await ledger.authorize(key.secret, false, true).catch(codeOf)).toBe(
        "insufficient_credit",
      );
      expect(await ledger.authorize(key.secret, false, true).catch(codeOf)).toBe(
        "insufficient_credit",
      );
      await ledger.takeDesk("one");
      const { rows } = await ledger.pageEvents({ ...all, type: "account.exhausted" });
      expect(rows.map(({ facts }) => facts["balance_nanos"])).toEqual(["2000000", "1"]);
      expect(rows.map(({ keyId }) => keyId)).toEqual([key.record.id, key.record.id]);
    });

    test("of a budget come at 80 per cent, and at 100 where a request is refused for what is left", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const shop = await ledger.createAccount("shop", 10n ** 9n);
      const key = await ledger.createKey(shop.id, "till");
      const budget = { amountNanos: 2_000_000n, period: "day", timezone: "UTC" } as const;
      await ledger.changeKey(key.record.id, { budget });
      const ask = async (tokens: number): Promise<string> => {
        const order = orderOf(await ledger.authorize(key.secret, false, true), {
          outputTokensRequested: tokens,
        });
        const answer = await ledger.admit(order).then(() => "admitted", codeOf);
        if (answer === "admitted") await ledger.settle(settlementOf(order, [1_000, tokens]));
        return answer;
      };
      const percents = async (): Promise<readonly unknown[]> => {
        await ledger.takeDesk("one");
        const { rows } = await ledger.pageEvents({ ...all, type: "budget.reached" });
        return rows.map(({ facts, keyId }) => [facts["percent"], facts["spent_nanos"], keyId]);
      };
      expect(await ask(500), "more than the budget, of which little is spent").toBe(
        "budget_exceeded",
      );
      expect(await percents()).toEqual([]);
      expect(await ask(150)).toBe("admitted");
      expect(await percents(), "1,600,000 of 2,000,000").toEqual([[80, "1600000", key.record.id]]);
      expect(await ask(1)).toBe("budget_exceeded");
      expect(await ask(1)).toBe("budget_exceeded");
      expect((await percents()).slice(1)).toEqual([[100, "1600000", key.record.id]]);
      stage.later(86_400_000);
      expect(await ask(150)).toBe("admitted");
      expect(await percents(), "the next day").toHaveLength(3);
    });

    test("of a key that expires come a day before, once for each end", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const shop = await ledger.createAccount("shop", 0n);
      const key = await ledger.createKey(shop.id, "till");
      const endMs = stage.nowMs() + 2 * limits.keyExpiringMs;
      await stage.query(`update api_key set expires_at_ms = ${String(endMs)}`);
      await ledger.noteExpiringKeys();
      stage.later(limits.keyExpiringMs);
      await ledger.noteExpiringKeys();
      await ledger.noteExpiringKeys();
      await ledger.takeDesk("one");
      const { rows } = await ledger.pageEvents(all);
      expect(rows.map(eventToJson)).toMatchObject([
        {
          type: "key.expiring",
          data: {
            account: shop.id,
            key: key.record.id,
            name: "till",
            expires_at: new Date(endMs).toISOString(),
          },
        },
      ]);
      await stage.query(`update api_key set expires_at_ms = expires_at_ms - 1`);
      await ledger.noteExpiringKeys();
      await stage.query(`update api_key set expires_at_ms = ${String(stage.nowMs())}`);
      await ledger.noteExpiringKeys();
      await ledger.takeDesk("one");
      expect(await told(ledger), "another end, and none that is over").toHaveLength(2);
    });

    test("of the deployment come once over all replicas, after 30 seconds", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const types = async (): Promise<readonly unknown[]> => {
        await ledger.takeDesk("one");
        return (await ledger.pageEvents(all)).rows.map(({ type }) => type);
      };
      const look = async (views: Readonly<Record<string, boolean>>): Promise<void> => {
        stage.later(10_000);
        for (const [by, up] of Object.entries(views)) await ledger.noteDeployment(by, up);
      };
      await look({ a: true, b: true });
      for (let count = 0; count < 5; count += 1) await look({ a: true, b: false });
      expect(await types(), "one of them reaches it").toEqual([]);
      for (let count = 0; count < 2; count += 1) await look({ a: false, b: false });
      expect(await types()).toEqual([]);
      await look({ a: false, b: false });
      expect(await types()).toEqual(["deployment.down"]);
      for (let count = 0; count < 3; count += 1) await look({ a: true, b: false });
      await look({ a: false, b: false });
      await look({ a: true, b: false });
      expect(await types(), "it was not up for 30 seconds").toEqual(["deployment.down"]);
      for (let count = 0; count < 3; count += 1) await look({ a: true, b: false });
      expect(await types()).toEqual(["deployment.down", "deployment.up"]);
      await look({ a: true, b: true });
      expect(await types()).toHaveLength(2);
    });

    test("of a ledger that does not add up come with each verification", async () => {
      await using stage = await open();
      const { ledger } = stage;
      await ledger.createAccount("shop", 7n);
      await ledger.verify([]);
      await stage.query("update account set balance_nanos = balance_nanos - 1");
      const report = await ledger.verify([]);
      await ledger.takeDesk("one");
      expect((await told(ledger)).slice(1)).toEqual([
        ["verify.failed", null, { problems: report.problemsTotal, first: "balance-differs" }],
      ]);
    });

    test("are delivered to each webhook that wants them, the first of each account first", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const every = await ledger.createWebhook(hook);
      const low = await ledger.createWebhook({ ...hook, types: ["account.low_balance"] });
      expect(every.secret).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/);
      const one = await ledger.createAccount("one", 7n);
      const two = await ledger.createAccount("two", 8n);
      await ledger.creditAccount(one.id, 5n, null);
      const first = await due(ledger);
      expect(
        first.map((each) => [each.webhookId, each.event.accountId, each.event.position]),
      ).toEqual([
        [every.record.id, one.id, 1],
        [every.record.id, two.id, 2],
      ]);
      expect(first[0]?.secrets.map((secret) => Buffer.from(secret).toString("base64"))).toEqual([
        every.secret.slice("whsec_".length),
      ]);
      for (const each of first) await ledger.finishTry(tried(each, true));
      expect((await due(ledger)).map(({ event }) => event.position)).toEqual([3]);
      const page = { id: every.record.id, state: null, before: null, rowsMax: 10 };
      const states = (await ledger.pageDeliveries(page)).map((each) => [
        each.event.position,
        each.state,
        each.tries,
      ]);
      expect(states).toEqual([
        [3, "pending", 0],
        [2, "delivered", 1],
        [1, "delivered", 1],
      ]);
      expect(await ledger.pageDeliveries({ ...page, id: low.record.id })).toEqual([]);
    });

    test("are tried again on the schedule, then their webhook is failing until one comes through", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { record } = await ledger.createWebhook(hook);
      const shop = await ledger.createAccount("shop", 7n);
      const waits: number[] = [];
      for (;;) {
        const [first] = await due(ledger);
        if (first === undefined) break;
        await ledger.finishTry(tried(first, false));
        // Said twice, as after an answer of the ledger that was lost: counted once.
        await ledger.finishTry(tried(first, false));
        const page = { id: record.id, state: null, before: null, rowsMax: 1 };
        const [delivery] = await ledger.pageDeliveries(page);
        if (delivery?.nextTryAtMs === null || delivery === undefined) break;
        waits.push((delivery.nextTryAtMs - stage.nowMs()) / 1_000);
        stage.later(delivery.nextTryAtMs - stage.nowMs() - 1);
        expect(await due(ledger)).toEqual([]);
        stage.later(1);
      }
      expect(waits).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
      expect((await ledger.showWebhook(record.id)).failingSinceMs).toBe(stage.nowMs());
      await ledger.creditAccount(shop.id, 1n, null);
      const [next] = await due(ledger);
      expect(next?.event.position, "it goes on getting what happens").toBe(2);
      if (next !== undefined) await ledger.finishTry(tried(next, true));
      expect((await ledger.showWebhook(record.id)).failingSinceMs).toBeNull();
      const [, failed] = await ledger.pageDeliveries({
        id: record.id,
        state: null,
        before: null,
        rowsMax: 2,
      });
      expect(failed).toMatchObject({
        state: "failed",
        tries: 10,
        error: "answered 500",
        statusCode: 500,
      });
      await ledger.resendDelivery(record.id, failed?.event.id ?? "");
      expect((await due(ledger)).map(({ event }) => event.position)).toEqual([1]);
    });

    test("have one deliverer at a time, and another one when its lease is over", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const other = await stage.openAnother();
      await ledger.createWebhook(hook);
      await ledger.createAccount("shop", 7n);
      expect(await due(ledger, "one")).toHaveLength(1);
      expect(await other.takeDesk("two")).toBeNull();
      stage.later(limits.deskLeaseMs / 2 + 1);
      expect(await due(ledger, "one"), "it keeps the desk as it works").toHaveLength(1);
      stage.later(limits.deskLeaseMs - 1);
      expect(await other.takeDesk("two")).toBeNull();
      stage.later(1);
      expect(await due(other, "two")).toHaveLength(1);
      expect(await ledger.takeDesk("one")).toBeNull();
      await other.leaveDesk("two");
      expect(await due(ledger, "one")).toHaveLength(1);
    });

    test("wait while their webhook is paused, and end with it", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { record } = await ledger.createWebhook({ ...hook, status: "paused" });
      const shop = await ledger.createAccount("shop", 7n);
      expect(await due(ledger)).toEqual([]);
      expect(await ledger.testWebhook(record.id).catch(codeOf)).toBe("not_possible");
      await ledger.changeWebhook(record.id, { status: "active" });
      expect(await due(ledger)).toHaveLength(1);
      await ledger.testWebhook(record.id);
      const tests = await due(ledger);
      expect(tests.map(({ event }) => [event.position, event.type])).toEqual([
        [1, "account.credited"],
        [2, "webhook.test"],
      ]);
      expect(await told(ledger), "a test is nothing that has happened").toHaveLength(1);
      await ledger.deleteWebhook(record.id);
      expect(await ledger.listWebhooks()).toEqual([]);
      expect(await due(ledger)).toEqual([]);
      await ledger.creditAccount(shop.id, 7n, null);
      await due(ledger);
      expect(await ledger.forgetEvents()).toBe(true);
      expect(await stage.query("select id from webhook")).toEqual([]);
      expect(await stage.query("select position from delivery")).toEqual([]);
      expect(await told(ledger)).toHaveLength(2);
    });

    test("are forgotten after 30 days, and a cursor from before says so", async () => {
      await using stage = await open();
      const { ledger } = stage;
      await ledger.createWebhook({ ...hook, status: "paused" });
      const shop = await ledger.createAccount("shop", 7n);
      await ledger.creditAccount(shop.id, 7n, null);
      await ledger.takeDesk("one");
      stage.later(limits.eventsKeptMs - 1);
      await ledger.creditAccount(shop.id, 7n, null);
      await ledger.takeDesk("one");
      await ledger.forgetEvents();
      expect(await told(ledger)).toHaveLength(3);
      stage.later(1);
      await ledger.forgetEvents();
      expect(await told(ledger)).toHaveLength(1);
      expect(await stage.query("select position from delivery")).toHaveLength(1);
      expect((await ledger.pageEvents({ ...all, after: 1 })).lost).toBe(true);
      expect((await ledger.pageEvents({ ...all, after: 2 })).lost).toBe(false);
      stage.later(limits.eventsKeptMs);
      await ledger.forgetEvents();
      expect((await ledger.pageEvents({ ...all, after: 2 })).lost).toBe(true);
      expect((await ledger.pageEvents({ ...all, after: 3 })).lost).toBe(false);
      await ledger.creditAccount(shop.id, 7n, null);
      await ledger.takeDesk("one");
      expect((await ledger.pageEvents(all)).rows.map(({ position }) => position)).toEqual([4]);
    });

    test("keep their secret for a while after it was replaced", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { record, secret } = await ledger.createWebhook(hook);
      await ledger.createAccount("shop", 7n);
      const rotated = await ledger.rotateWebhook(record.id, 60_000);
      const secrets = async (): Promise<readonly string[]> =>
        (await due(ledger))[0]?.secrets.map(
          (one) => `whsec_${Buffer.from(one).toString("base64")}`,
        ) ?? [];
      expect(rotated.record.version).toBe(2);
      expect(await secrets()).toEqual([rotated.secret, secret]);
      stage.later(60_000);
      expect(await secrets()).toEqual([rotated.secret]);
      const again = await ledger.rotateWebhook(record.id, 0);
      expect(await secrets()).toEqual([again.secret]);
    });
  });
});

test("a refusal that found less than is there now is no event: credit came after it", () => {
  using store = openNewStore();
  const { accountId, keyId } = openTill(store, "shop", 10n);
  const note = (balanceNanos: bigint) =>
    run(store, "noteExhausted", { accountId, keyId, balanceNanos, neededNanos: 99n });
  const exhausted = () => {
    run(store, "takeDesk", { holder: "one", seed: String(Math.random()) });
    return run(store, "pageEvents", { ...all, type: "account.exhausted" }).rows.length;
  };
  note(9n);
  expect(exhausted()).toBe(0);
  note(10n);
  note(10n);
  expect(exhausted()).toBe(1);
});
