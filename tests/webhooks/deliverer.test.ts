import { expect, test } from "vitest";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { DueDelivery } from "../../src/ledger/webhook.ts";
import { limits } from "../../src/limits.ts";
import { openDeliverer, type Deliverer } from "../../src/webhooks/deliverer.ts";
import type { TryOutcome } from "../../src/webhooks/post-event.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { openSqliteStage } from "../ledger/event-stage.ts";

const hook = {
  url: "https://shop.example/",
  description: "",
  types: null,
  status: "active",
} as const;
const done: TryOutcome = { delivered: true, statusCode: 204, error: null };
const refused: TryOutcome = { delivered: false, statusCode: 500, error: "answered 500" };

interface Posted {
  readonly delivery: DueDelivery;
  readonly signal: AbortSignal;
  answer(outcome: TryOutcome): void;
}

/** A deliverer whose posts end when the test says so. */
function open(ledger: StoreLedger, holder = "one") {
  const timers = openManualTimers();
  const posted: Posted[] = [];
  const lines: string[] = [];
  const givenOut: string[] = [];
  const deployment: { up: boolean | null } = { up: null };
  const deliverer: Deliverer = openDeliverer({
    ledger,
    holder,
    timers,
    monotonicMs: timers.monotonicMs,
    isDeploymentUp: () => Promise.resolve(deployment.up),
    post: (delivery, signal) =>
      new Promise((resolve) => {
        posted.push({ delivery, signal, answer: resolve });
        signal.addEventListener("abort", () => resolve(refused));
      }),
    telemetry: {
      lifecycle: (event) => void lines.push(event),
      eventsGivenOut: (types) => void givenOut.push(...types),
    },
  });
  return {
    deliverer,
    timers,
    posted,
    lines,
    givenOut,
    deployment,
    positions: () => posted.map(({ delivery }) => delivery.event.position),
  };
}

/** What is waited for has no timer of its own here: it is there when the ledger has answered. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

test("events of one account leave one after another, those of others beside them", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  await ledger.createWebhook(hook);
  const one = await ledger.createAccount("one", 1n);
  await ledger.createAccount("two", 1n);
  await ledger.creditAccount(one.id, 1n, null);
  const { deliverer, positions, posted } = open(ledger);
  await using _ = deliverer;
  await deliverer.look();
  await deliverer.look();
  expect(positions()).toEqual([1, 2]);
  posted[0]?.answer(refused);
  await until(() => posted.length === 3);
  expect(positions(), "a try that failed lets the next event go").toEqual([1, 2, 3]);
});

test("one webhook has eight tries under way at most, all together 32", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  for (let count = 0; count < 5; count += 1) await ledger.createWebhook(hook);
  for (let count = 0; count < 12; count += 1) await ledger.createAccount("shop", 1n);
  const { deliverer, posted } = open(ledger);
  await using _ = deliverer;
  await deliverer.look();
  await deliverer.look();
  const toEach = Map.groupBy(posted, ({ delivery }) => delivery.webhookId);
  expect([...toEach.values()].map(({ length }) => length)).toEqual([8, 8, 8, 8]);
});

test("the outbox is looked into each second, from one look to the next", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  await ledger.createWebhook(hook);
  const { deliverer, posted, timers } = open(ledger);
  await using _ = deliverer;
  await ledger.createAccount("shop", 1n);
  timers.advance(limits.deskLookMs - 1);
  expect(posted).toEqual([]);
  timers.advance(1);
  await until(() => posted.length === 1);
});

test("what is under way at the end is ended, not counted, and left to the next process at once", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  const { record } = await ledger.createWebhook(hook);
  await ledger.createAccount("shop", 1n);
  const first = open(ledger);
  await first.deliverer.look();
  expect(first.posted).toHaveLength(1);
  const other = open(await stage.openAnother(), "two");
  await using _ = other.deliverer;
  await other.deliverer.look();
  expect(other.posted, "the first one has the desk").toEqual([]);
  await first.deliverer[Symbol.asyncDispose]();
  expect(first.posted[0]?.signal.aborted).toBe(true);
  expect(first.timers.waiting).toBe(0);
  await other.deliverer.look();
  expect(other.posted.map(({ delivery }) => delivery.tries)).toEqual([0]);
  other.posted[0]?.answer(done);
  const page = { id: record.id, state: "delivered", before: null, rowsMax: 2 } as const;
  for (;;) if ((await ledger.pageDeliveries(page)).length === 1) break;
});

test("a webhook whose tries are used up is logged once", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  const { record } = await ledger.createWebhook(hook);
  await ledger.createAccount("shop", 1n);
  const { deliverer, lines, posted } = open(ledger);
  await using _ = deliverer;
  for (let tries = 0; tries < 10; tries += 1) {
    await deliverer.look();
    await until(() => posted.length === tries + 1);
    posted[tries]?.answer(refused);
    const page = { id: record.id, state: null, before: null, rowsMax: 1 };
    for (;;) if ((await ledger.pageDeliveries(page))[0]?.tries === tries + 1) break;
    stage.later(limits.webhookRetriesMs[tries] ?? 0);
  }
  await until(() => lines.length > 0);
  expect(lines).toEqual(["webhook failing"]);
  await deliverer.look();
  expect(posted).toHaveLength(10);
});

test("what waits for active webhooks is counted every 15 seconds, and what was given out once", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  const { record } = await ledger.createWebhook(hook);
  const { record: paused } = await ledger.createWebhook(hook);
  const one = await ledger.createAccount("shop", 1n);
  await ledger.creditAccount(one.id, 1n, null);
  const { deliverer, givenOut, posted, timers } = open(ledger);
  await using _ = deliverer;
  await deliverer.look();
  expect(deliverer.backlog).toBeNull();
  await ledger.changeWebhook(paused.id, { status: "paused" });
  timers.advance(limits.backlogLookMs);
  await until(() => deliverer.backlog !== null);
  expect(deliverer.backlog).toEqual({ pending: 2, failing: 0 });
  expect(givenOut).toEqual(["account.credited", "account.credited"]);
  posted.find(({ delivery }) => delivery.webhookId === record.id)?.answer(done);
  const page = { id: record.id, state: "delivered", before: null, rowsMax: 2 } as const;
  for (;;) if ((await ledger.pageDeliveries(page)).length === 1) break;
  timers.advance(limits.backlogLookMs);
  await until(() => deliverer.backlog?.pending === 1);
});

test("the deployment is looked at every ten seconds; what is not known is not noted", async () => {
  await using stage = await openSqliteStage();
  const { ledger } = stage;
  const { deliverer, deployment, timers } = open(ledger);
  await using _ = deliverer;
  const look = async (up: boolean | null): Promise<void> => {
    deployment.up = up;
    stage.later(limits.deploymentLookMs);
    timers.advance(limits.deploymentLookMs);
    // Its next look is set when this one is done.
    await until(() => timers.delays.includes(limits.deploymentLookMs));
  };
  await look(false);
  await look(true);
  for (let count = 0; count < 4; count += 1) await look(null);
  for (let count = 0; count < 4; count += 1) await look(false);
  await deliverer.look();
  const { rows } = await ledger.pageEvents({ after: 0, accountId: null, type: null, rowsMax: 9 });
  expect(rows.map(({ type }) => type)).toEqual(["deployment.down"]);
});
