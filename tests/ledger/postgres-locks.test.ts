import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchiveFile } from "../../src/ledger/archive/archive-file.ts";
import { archiveBefore } from "../../src/ledger/archive/archive-run.ts";
import { moveRows } from "../../src/ledger/postgres/move.ts";
import { limits } from "../../src/limits.ts";
import {
  beginMs,
  dayMs,
  type Filled,
  fillScene,
  holding,
  openScene,
  type Scene,
} from "./lock-scene.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { postgresTests } from "./postgres-server.ts";
import { temporaryLedger } from "./support.ts";

// What is decided from a row is decided under its lock: each operation waits for a transaction that has the row, before it
// has written anything. Where a lock is missing, or is a weaker one, it goes on and waits at a later write, or not at all.

type Databases = Awaited<ReturnType<typeof openPostgresDatabases>>;

/** What waits for a row that another transaction has. */
interface Wait {
  readonly name: string;
  /** The table of the row and how it is found; the row's lock is the weakest that its own has to wait for. */
  readonly row: (filled: Filled) => readonly [table: string, where: string];
  readonly step: (scene: Scene & Filled) => Promise<unknown>;
  /** What it has written before, and the words of the statement that waits; absent: nothing, and any. */
  readonly written?: readonly string[];
  readonly query?: string;
}

const account = ({ accountId }: Filled) => ["account", `id = '${accountId}'`] as const;
const window = ({ keyId }: Filled) => ["rate_window", `key_id = '${keyId}'`] as const;
const only = (table: string) => () => [table, "true"] as const;
const ofDesk = { written: ["event_desk"], query: "for no key update" };
const advisory = { first: "92706122727426", "external-id": "92706122727428" } as const;
const soon = {
  inputNanosPerMillion: 1n,
  outputNanosPerMillion: 1n,
  effectiveFromMs: beginMs + dayMs,
};

const waits: readonly Wait[] = [
  {
    name: "a ticket is taken behind its window",
    row: window,
    step: ({ ledger, secret }) => ledger.authorize(secret, true),
  },
  {
    name: "a ticket is given back behind its window",
    row: window,
    step: ({ caller, ledger }) => ledger.giveTicketBack(caller),
  },
  {
    name: "an admission is decided behind its account",
    row: account,
    step: ({ caller, ledger }) => ledger.admit(orderOf(caller)),
  },
  {
    name: "a settlement finds its reservation behind its account",
    row: account,
    step: ({ ledger, settled }) => ledger.settle(settlementOf(settled)),
  },
  {
    name: "a budget's next period begins behind its account",
    row: account,
    step: ({ accountId, keyId, raw }) =>
      raw.query("select tributary.begin_period($1, $2, 1, 2, 1)", [accountId, keyId]),
  },
  {
    name: "entries are rolled up behind their account",
    row: account,
    step: ({ accountId, ledger }) => ledger.checkpoint(accountId, beginMs - dayMs),
  },
  {
    name: "credit is added behind its account",
    row: account,
    step: ({ accountId, ledger }) => ledger.creditAccount(accountId, 1n, null),
  },
  {
    name: "a refund is held against its receipt",
    row: () => ["reservation", "request_id = 'req_settled'"],
    step: ({ accountId, ledger }) =>
      ledger.creditAccount(accountId, 1n, { kind: "refund", receipt: "req_settled" }),
  },
  {
    name: "a grant is paid behind its account",
    row: ({ grantedId }) => ["account", `id = '${grantedId}'`],
    step: ({ grantedId, store }) => store.call("payGrants", { accountId: grantedId }),
  },
  {
    name: "an account is changed from what it is",
    row: account,
    step: ({ accountId, ledger }) => ledger.changeAccount(accountId, { name: "other" }),
  },
  {
    name: "a key is changed behind its account",
    row: account,
    step: ({ keyId, ledger }) => ledger.changeKey(keyId, { name: "other" }),
  },
  {
    name: "a list of prices is changed from what it is",
    row: only("price_list"),
    step: ({ ledger }) => ledger.changePriceList({ name: "dear", prices: [soon] }),
  },
  {
    name: "a refusal for a budget is noted behind its account",
    row: account,
    step: ({ accountId, keyId, store }) => store.call("noteBudgetRefused", { accountId, keyId }),
  },
  {
    name: "a key that expires is noted behind its account",
    row: account,
    step: ({ store }) => store.call("noteExpiringKeys", {}),
  },
  {
    name: "what is seen of the deployment is held against what was",
    row: only("deployment_state"),
    step: ({ store }) => store.call("noteDeployment", { seenBy: "one", up: false }),
  },
  {
    name: "a webhook is changed from what it is",
    row: only("webhook"),
    step: ({ ledger, webhook }) => ledger.changeWebhook(webhook.id, { description: "other" }),
  },
  {
    name: "an operator is revoked once",
    row: only("operator"),
    step: ({ ledger, operator }) => ledger.revokeOperator(operator.id),
  },
  {
    name: "the desk of events is taken by one",
    row: only("event_desk"),
    step: ({ store }) => store.call("takeDesk", { holder: "one", seed: "a" }),
    ...ofDesk,
  },
  {
    name: "a test's event has its position from the desk",
    row: only("event_desk"),
    step: ({ ledger, webhook }) => ledger.testWebhook(webhook.id),
    ...ofDesk,
  },
];

/** Of a ledger without a row. */
const emptySource = {
  open: 0,
  processes: 0,
  verify: () => {
    throw new Error("not asked for");
  },
  read: () => [],
  beginMove() {},
  finishMove() {},
  giveUpMove() {},
  [Symbol.dispose]() {},
};

describe.skipIf(!postgresTests)("behind its lock on PostgreSQL", () => {
  let server: Databases;
  let url: string;
  let scene: Scene & Filled;
  beforeAll(async () => {
    server = await openPostgresDatabases();
    url = await server.createLedger("locks");
    const opened = await openScene(url);
    scene = Object.assign(opened, await fillScene(opened));
  });
  afterAll(async () => {
    await scene[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  test.each(waits)("$name", async ({ query = "", row, step, written = [] }) => {
    const [table, where] = row(scene);
    const lock = `select 1 from tributary.${table} where ${where} for share`;
    const { ending, seen } = await holding(scene, lock, () => step(scene));
    expect(seen).toEqual({ query: expect.stringContaining(query), written });
    expect(await ending).toMatchObject({ status: "fulfilled" });
  });

  test("receipts are archived behind what refunds them", async () => {
    await using other = await openScene(await server.createLedger("locks_archive"));
    using file = temporaryLedger();
    const { accountId } = await fillScene(other);
    await other.ledger.keepUsage([accountId]);
    await using archive = openArchiveFile(file.folder, beginMs);
    const lock = "select 1 from tributary.reservation where request_id = 'req_settled' for share";
    const { ending, seen } = await holding(other, lock, () =>
      archiveBefore(
        other.ledger,
        { accountIds: [accountId], beforeMs: beginMs + 1 },
        { file: archive, rest: () => Promise.resolve() },
      ),
    );
    expect(seen).toMatchObject({ written: [] });
    expect(await ending).toMatchObject({ status: "fulfilled", value: { receipts: 1 } });
  });

  test("a ledger is moved, and what is first in it is made, where nothing else is made meanwhile", async () => {
    const target = await server.createLedger("locks_first");
    await using other = await openScene(target);
    const made = `insert into tributary.account (id, name, status, created_at_ms, balance_nanos, held_nanos, running, entries)
      values ('acct_1', 'a', 'active', 1, 0, 0, 0, 0)`;
    const moving = await holding(other, made, () => moveRows({ url: target }, emptySource));
    expect(moving.seen).toMatchObject({ written: [] });
    expect(await moving.ending).toMatchObject({ status: "fulfilled" });
    const lock = `select pg_advisory_xact_lock(${advisory.first})`;
    for (const step of [
      () => other.ledger.ensureFirstAccount(1n),
      () => other.ledger.createFirstOperator(),
      () => other.ledger.sealKeys(),
    ]) {
      const { ending, seen } = await holding(other, lock, step);
      expect(seen).toMatchObject({ written: [] });
      expect(await ending).toMatchObject({ status: "fulfilled", value: expect.anything() });
    }
  });

  test("an external id is looked for by one change at a time", async () => {
    const lock = `select pg_advisory_xact_lock(${advisory["external-id"]})`;
    const { accountId, ledger } = scene;
    const { ending, seen } = await holding(scene, lock, () =>
      ledger.changeAccount(accountId, { externalId: "shop-1" }),
    );
    expect(seen).toMatchObject({ written: [] });
    expect(await ending).toMatchObject({ status: "fulfilled" });
  });

  test("leases are renewed in the order of their accounts, in which settlements lock them", async () => {
    // The order of a plan by an index would be that of the accounts by itself.
    const off = ["jit", "enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"];
    const plan = off.map((one) => `-c ${one}=off`);
    await using other = await openScene(`${url}&options=${encodeURIComponent(plan.join(" "))}`);
    const { ledger } = other;
    const accounts = await Promise.all(
      ["a", "b"].map((name) => ledger.createAccount(name, 10n ** 9n)),
    );
    // They are made, asked for and named in the other order.
    const requests = ["req_z", "req_a"] as const;
    for (const [at, id] of accounts
      .map((one) => one.id)
      .toSorted()
      .toReversed()
      .entries()) {
      const { secret } = await ledger.createKey(id, "web");
      const caller = await ledger.authorize(secret, false);
      await ledger.admit(orderOf(caller, { requestId: requests[1 - at] ?? "req_" }));
    }
    const others =
      "select request_id from tributary.reservation where request_id in ('req_z', 'req_a')";
    const { ending, found, seen } = await holding(
      other,
      [`${others} and request_id = 'req_z' for share`, `${others} for update skip locked`],
      () => ledger.renew(requests.toReversed()),
    );
    expect(seen).not.toBeNull();
    expect(found).toEqual([{ request_id: "req_a" }]);
    expect(await ending).toMatchObject({ value: new Set(requests) });
  });

  test("what is due is found behind its account, and what is renewed at that moment is left alone", async () => {
    await using other = await openScene(await server.createLedger("locks_due"));
    const { accountId } = await fillScene(other);
    const { at, ledger, raw } = other;
    const expire = (): Promise<unknown> =>
      at(beginMs + 2 * limits.rateWindowMs, () => ledger.expire());
    const kept = `select (select count(*) from tributary.rate_window)::integer as windows,
      (select count(*) from tributary.reservation where state = 'open')::integer as open`;
    const inUse = "select 1 from tributary.rate_window w, tributary.reservation r for update";
    const left = await holding(other, inUse, expire);
    expect({ ...left, ending: await left.ending }).toMatchObject({
      seen: null,
      ending: { value: 0 },
    });
    expect((await raw.query(kept)).rows).toEqual([{ windows: 1, open: 1 }]);
    const lock = `select 1 from tributary.account where id = '${accountId}' for share`;
    const { ending, seen } = await holding(other, lock, expire);
    expect(seen).toMatchObject({ written: [] });
    expect(await ending).toMatchObject({ value: 1 });
    expect((await raw.query(kept)).rows).toEqual([{ windows: 0, open: 0 }]);
  });

  test("nothing waits where another transaction does the same, or has just shown what is asked", async () => {
    const { ledger, store } = scene;
    const checked = "select 1 from tributary.migration where number = 1 for update";
    expect(await holding(scene, checked, () => ledger.check())).toMatchObject({ seen: null });
    const usage = "select pg_advisory_xact_lock(hashtextextended('usage', 92706122727427))";
    const { ending, seen } = await holding(scene, usage, () =>
      store.call("keepUsage", { accountIds: [scene.accountId] }),
    );
    expect(seen).toBeNull();
    expect(await ending).toMatchObject({ value: { mine: false, done: [] } });
  });
});
