import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Actor, ChangedBy } from "../../src/ledger/administration/changed-by.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openLedgerHere } from "./ledger-here.ts";
import { makeLedger } from "./made-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { ReceiptQuery } from "../../src/ledger/administration/lists.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests } from "./postgres-server.ts";
import { codeOf, defaultSettings, temporaryLedger } from "./support.ts";

// What operators do, in both stores: who may, what is written of it, and what a repeat answers.

interface Stage extends AsyncDisposable {
  readonly ledger: StoreLedger;
  /** Moves the time of the store on. */
  later(ms: number): void;
  execute(sql: string): Promise<unknown>;
}

const actor: Actor = "user:ann";
const everything = {
  actor: null,
  action: null,
  target: null,
  sinceMs: null,
  untilMs: null,
  before: null,
  rowsMax: 100,
};
const owner = { name: "Olga", role: "owner", expiresAtMs: null } as const;

let server: Awaited<ReturnType<typeof openPostgresDatabases>> | null = null;
let databases = 0;

async function openSqliteStage(): Promise<Stage> {
  const file = temporaryLedger();
  let nowMs = 1_000_000;
  const settings = { ...defaultSettings, path: file.path };
  makeLedger(file.path);
  const ledger = openLedgerHere(settings, { now: () => nowMs, actor });
  return {
    ledger,
    later: (ms) => void (nowMs += ms),
    async execute(sql) {
      await Promise.resolve();
      using database = new DatabaseSync(file.path);
      database.exec(sql);
    },
    async [Symbol.asyncDispose]() {
      await ledger[Symbol.asyncDispose]();
      file[Symbol.dispose]();
    },
  };
}

async function openPostgresStage(): Promise<Stage> {
  databases += 1;
  const url = (await server?.createLedger(`operators_${String(databases)}`)) ?? "";
  let nowMs = 1_000_000;
  const ledger = await openPostgresLedger({ ...defaultSettings, url }, { now: () => nowMs, actor });
  return {
    ledger,
    later: (ms) => void (nowMs += ms),
    execute: (sql) => execute(url, `set search_path = tributary; ${sql}`),
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  };
}

function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

function once(key: string, body: string, by: Actor = "oper_1"): ChangedBy {
  const bodyHash = new Uint8Array(createHash("sha256").update(body).digest());
  return { actor: by, once: { route: "POST /accounts", key, bodyHash } };
}

describe.each([
  { name: "SQLite", open: openSqliteStage, runs: true },
  { name: "PostgreSQL", open: openPostgresStage, runs: postgresTests },
])("$name", ({ name, open, runs }) => {
  describe.runIf(runs)("operators", () => {
    beforeAll(async () => {
      if (name === "PostgreSQL") server = await openPostgresDatabases();
    });
    afterAll(async () => {
      if (name === "PostgreSQL") await server?.[Symbol.asyncDispose]();
    });

    test("a token is its operator's, until one of them ends", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const olga = await ledger.createOperator(owner);
      const bill = await ledger.createOperator({
        name: "Bill",
        role: "billing",
        expiresAtMs: 1_060_000,
      });
      expect(olga.secret).toMatch(/^trop_[0-9A-Za-z]{15}_[0-9A-Za-z]{43}$/);
      expect(await ledger.findOperator(olga.secret)).toEqual(olga.record);
      expect(await ledger.findOperator(bill.secret)).toMatchObject({ role: "billing" });
      const wrong = `${olga.secret.slice(0, -1)}${olga.secret.endsWith("a") ? "b" : "a"}`;
      expect(await ledger.findOperator(wrong)).toBeNull();
      expect(await ledger.findOperator("trop_x_y")).toBeNull();
      stage.later(60_000);
      expect(await ledger.findOperator(bill.secret)).toBeNull();
      await ledger.revokeOperator(olga.record.id);
      expect(await ledger.findOperator(olga.secret)).toBeNull();
      expect((await ledger.listOperators()).map((one) => [one.name, one.revokedAtMs])).toEqual(
        expect.arrayContaining([
          ["Olga", 1_060_000],
          ["Bill", null],
        ]),
      );
    });

    test("a session is opened by a token or, once, by a code, and ends with its operator", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const olga = await ledger.createOperator(owner);
      const byToken = { type: "token", presented: olga.secret } as const;
      const first = await ledger.openSession(byToken);
      expect(first?.secret).toMatch(/^trse_/);
      expect(first?.session).toEqual({
        operator: olga.record,
        expiresAtMs: 1_000_000 + 12 * 3_600_000,
      });
      expect(await ledger.findSession(first?.secret ?? "")).toEqual(first?.session);
      expect(await ledger.findSession(olga.secret)).toBeNull();
      expect(await ledger.findOperator(first?.secret ?? "")).toBeNull();
      const code = await ledger.createLoginCode(olga.record.id);
      const byCode = { type: "code", presented: code.secret } as const;
      const opened = await Promise.all([ledger.openSession(byCode), ledger.openSession(byCode)]);
      expect(opened.filter((one) => one !== null)).toHaveLength(1);
      expect(await ledger.openSession(byCode)).toBeNull();
      expect(await ledger.openSession({ ...byCode, type: "token" })).toBeNull();
      expect(await ledger.endSession(first?.secret ?? "")).toBe(true);
      expect(await ledger.endSession(first?.secret ?? "")).toBe(false);
      expect(await ledger.findSession(first?.secret ?? "")).toBeNull();
      const [second] = opened.filter((one) => one !== null);
      expect(await ledger.findSession(second?.secret ?? "")).not.toBeNull();
      await ledger.revokeOperator(olga.record.id);
      expect(await ledger.findSession(second?.secret ?? "")).toBeNull();
      expect(await ledger.openSession(byToken)).toBeNull();
      const log = await ledger.listAudit({ ...everything, action: "operator.sign_in" });
      expect(log.map((row) => [row.actor, row.after])).toEqual([
        [olga.record.id, { by: "code" }],
        [olga.record.id, { by: "token" }],
      ]);
      expect(JSON.stringify(await ledger.listAudit(everything))).not.toMatch(/tr(?:op|lo|se)_/);
    });

    test("a code ends after 15 minutes, a session after 12 hours or with its token", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const expiresAtMs = 1_000_000 + 3_600_000;
      const bill = await ledger.createOperator({ name: "Bill", role: "billing", expiresAtMs });
      const late = await ledger.createLoginCode(bill.record.id);
      const session = await ledger.openSession({ type: "token", presented: bill.secret });
      expect(session?.session.expiresAtMs).toBe(expiresAtMs);
      stage.later(15 * 60_000 - 1);
      const code = { type: "code", presented: late.secret } as const;
      const early = await ledger.createLoginCode(bill.record.id);
      stage.later(1);
      expect(await ledger.openSession(code)).toBeNull();
      const long = await ledger.openSession({ type: "code", presented: early.secret });
      stage.later(3_600_000 - 15 * 60_000);
      expect(await ledger.findSession(session?.secret ?? "")).toBeNull();
      stage.later(12 * 3_600_000 - 3_600_000 + 15 * 60_000 - 1);
      expect(await ledger.findSession(long?.secret ?? "")).not.toBeNull();
      stage.later(1);
      expect(await ledger.findSession(long?.secret ?? "")).toBeNull();
    });

    test("the first code makes the first owner; later ones are of the only owner or of who is named", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const made = await Promise.all([ledger.createFirstOperator(), ledger.createFirstOperator()]);
      const [first, ...others] = made.filter((one) => one !== null);
      expect(others).toEqual([]);
      expect(first?.operator).toMatchObject({ name: "owner", role: "owner" });
      const again = await ledger.createLoginCode(null);
      expect(again.operator).toEqual(first?.operator);
      expect(await refusal(ledger.createLoginCode("oper_none"))).toBe("not_found");
      const olga = await ledger.createOperator(owner);
      expect(await refusal(ledger.createLoginCode(null))).toBe("not_possible");
      await ledger.revokeOperator(olga.record.id);
      expect(await refusal(ledger.createLoginCode(olga.record.id))).toBe("not_found");
      await ledger.revokeOperator(again.operator.id);
      expect(await refusal(ledger.createLoginCode(null))).toBe("not_possible");
      expect(await ledger.createFirstOperator()).toBeNull();
      const secrets = [first?.secret ?? "", again.secret];
      for (const presented of secrets)
        expect(await ledger.openSession({ type: "code", presented })).toBeNull();
    });

    test("a running request is cancelled by a mark that its process learns, and holds on until it has ended", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 10n ** 12n);
      const { secret } = await ledger.createKey(id, "web");
      const order = orderOf(await ledger.authorize(secret, true), { requestId: "req_cancel" });
      await ledger.admit(order);
      const olga = ledger.administer({ actor: "oper_olga", once: null });
      expect(await refusal(olga.cancelGeneration("req_none"))).toBe("not_found");
      expect(await ledger.cancelledGenerations()).toEqual([]);
      const second = await ledger.authorize(secret, true);
      await ledger.admit(orderOf(second, { requestId: "req_second" }));
      expect(await ledger.openRequests(5)).toEqual({
        ids: ["req_second", "req_cancel"],
        cancelled: [],
        count: 2,
      });
      expect(await olga.cancelGeneration("req_cancel")).toBe("req_cancel");
      await olga.cancelGeneration("req_cancel");
      expect(await ledger.cancelledGenerations()).toEqual(["req_cancel"]);
      expect(await ledger.openRequests(5)).toMatchObject({ cancelled: ["req_cancel"] });
      expect(await ledger.openRequests(1)).toEqual({
        ids: ["req_second"],
        cancelled: [],
        count: 2,
      });
      await ledger.settle({
        ...settlementOf(orderOf(second, { requestId: "req_second" })),
        outcome: "failed",
        usage: null,
      });
      expect([...(await ledger.renew(["req_cancel"]))]).toEqual(["req_cancel"]);
      expect((await ledger.showAccount(id)).heldNanos).toBeGreaterThan(0n);
      const settlement = { ...settlementOf(order), outcome: "cancelled-by-operator", usage: null };
      await ledger.settle(settlement as Parameters<typeof ledger.settle>[0]);
      expect(await ledger.cancelledGenerations()).toEqual([]);
      expect(await refusal(olga.cancelGeneration("req_cancel"))).toBe("not_possible");
      expect(await ledger.showAccount(id)).toMatchObject({
        balanceNanos: 10n ** 12n,
        heldNanos: 0n,
      });
      const log = await ledger.listAudit({ ...everything, action: "generation.cancel" });
      expect(log).toMatchObject([
        { actor: "oper_olga", target: "req_cancel", after: { account: id } },
      ]);
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    test("replicas say what they are, and learn that they are to drain", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const facts = {
        version: "1.2.3",
        host: "one",
        processId: 17,
        operators: "http://127.0.0.1:8081",
        running: 2,
        draining: false,
        reasons: { deployment: "away" },
        settings: { TRIBUTARY_PORT: "abc" },
      };
      const first = await ledger.reportReplica("a", facts);
      expect(first).toEqual({
        id: "a",
        startedAtMs: 1_000_000,
        seenAtMs: 1_000_000,
        drainAskedBy: null,
        facts,
      });
      stage.later(30_000);
      await ledger.reportReplica("b", facts);
      const olga = ledger.administer({ actor: "oper_olga", once: null });
      await olga.drainReplica("a");
      await ledger.drainReplica("a");
      const again = await ledger.reportReplica("a", { ...facts, running: 3 });
      expect(again).toEqual({
        ...first,
        seenAtMs: 1_030_000,
        drainAskedBy: "oper_olga",
        facts: { ...facts, running: 3 },
      });
      expect((await ledger.listReplicas()).map(({ id }) => id)).toEqual(["a", "b"]);
      stage.later(59_999);
      await ledger.reportReplica("b", facts);
      stage.later(1);
      expect((await ledger.listReplicas()).map(({ id }) => id)).toEqual(["b"]);
      expect(await refusal(olga.drainReplica("a"))).toBe("not_found");
      await ledger.forgetReplica("b");
      expect(await ledger.listReplicas()).toEqual([]);
    });

    test("a name is one operator's at a time", async () => {
      await using stage = await open();
      const { record } = await stage.ledger.createOperator(owner);
      expect(await refusal(stage.ledger.createOperator(owner))).toBe("not_possible");
      await stage.ledger.revokeOperator(record.id);
      expect(await refusal(stage.ledger.createOperator(owner))).toBe("done");
      expect(await refusal(stage.ledger.createOperator({ ...owner, name: "" }))).toBe(
        "invalid_value",
      );
      const over = { ...owner, name: "Otto", expiresAtMs: 1_000_000 };
      expect(await refusal(stage.ledger.createOperator(over))).toBe("invalid_value");
      expect(await refusal(stage.ledger.revokeOperator("oper_none"))).toBe("not_found");
      const twins = Array.from({ length: 8 }, () => ({ ...owner, name: "Twin" }));
      const codes = await Promise.all(
        twins.map((twin) => refusal(stage.ledger.createOperator(twin))),
      );
      expect(codes.toSorted()).toEqual(["done", ...Array<string>(7).fill("not_possible")]);
    });

    test("every change is in the log with who made it, and nothing else is", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 10n ** 9n);
      const { record } = await ledger.createKey(id, "web");
      const olga = ledger.administer({ actor: "oper_olga", once: null });
      await olga.creditAccount(id, 5n * 10n ** 8n, { note: "paid" });
      await olga.setAccountStatus(id, "disabled");
      await olga.setAccountStatus(id, "disabled");
      await olga.revokeKey(record.id);
      await olga.revokeKey(record.id);
      expect(await refusal(olga.creditAccount(id, -(10n ** 10n), null))).toBe("not_possible");
      await ledger.listAccounts();
      const rows = await ledger.listAudit(everything);
      expect(rows.map((row) => [row.actor, row.action, row.target, row.before, row.after])).toEqual(
        [
          ["oper_olga", "key.revoke", record.id, { revoked: false }, { revoked: true }],
          ["oper_olga", "account.disable", id, { status: "active" }, { status: "disabled" }],
          [
            "oper_olga",
            "account.credit",
            id,
            { balance: "1" },
            { balance: "1.5", amount: "0.5", kind: "top_up", note: "paid" },
          ],
          ["user:ann", "key.create", record.id, null, { account: id, name: "web" }],
          ["user:ann", "account.create", id, null, { name: "shop", credit: "1" }],
        ],
      );
      const of = { ...everything, actor: "oper_olga", target: id, rowsMax: 1 };
      const [newest] = await ledger.listAudit(of);
      expect(newest?.action).toBe("account.disable");
      const older = await ledger.listAudit({ ...of, before: newest?.sequence ?? 0 });
      expect(older.map((row) => row.action)).toEqual(["account.credit"]);
      expect(await ledger.listAudit({ ...everything, sinceMs: 1_000_001 })).toEqual([]);
      expect(await ledger.listAudit({ ...everything, untilMs: 1_000_000 })).toEqual([]);
      expect(await ledger.listAudit({ ...everything, action: "key.create" })).toHaveLength(1);
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    test("lists come in pages, newest first, by what was asked for", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 10n ** 12n);
      const { record, secret } = await ledger.createKey(id, "web");
      const orders = [];
      for (const count of [1, 2, 3]) {
        stage.later(1_000);
        const order = orderOf(await ledger.authorize(secret, true), {
          requestId: `req_page${String(count)}`,
        });
        await ledger.admit(order);
        if (count < 3) await ledger.settle(settlementOf(order, [500, 10 * count]));
        orders.push(order);
      }
      const all = {
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
        rowsMax: 10,
      };
      const ids = async (query: Partial<ReceiptQuery>): Promise<readonly string[]> =>
        (await ledger.pageReceipts({ ...all, ...query })).map(({ requestId }) => requestId);
      expect(await ids({})).toEqual(["req_page3", "req_page2", "req_page1"]);
      expect(await ids({ rowsMax: 1 })).toEqual(["req_page3"]);
      expect(await ids({ after: { atMs: 1_003_000, id: "req_page3" } })).toEqual([
        "req_page2",
        "req_page1",
      ]);
      expect(await ids({ state: "open", accountId: id, keyId: record.id })).toEqual(["req_page3"]);
      expect(await ids({ outcome: "completed", format: "messages" })).toHaveLength(2);
      expect(await ids({ sinceMs: 1_002_000, untilMs: 1_003_000 })).toEqual(["req_page2"]);
      const [newest] = await ledger.pageReceipts({ ...all, state: "settled" });
      const endedMs = newest?.resolvedAtMs ?? 0;
      for (const accountId of [null, id]) {
        const ended = { endedSinceMs: endedMs, endedUntilMs: endedMs + 1, accountId };
        expect(await ids(ended)).toEqual(["req_page2"]);
        expect(await ids({ ...ended, endedSinceMs: 0 })).toEqual(["req_page2", "req_page1"]);
        expect(await ids({ ...ended, endedUntilMs: endedMs })).toEqual([]);
        expect(await ids({ endedUntilMs: endedMs, accountId })).toEqual(["req_page1"]);
        expect(await ids({ endedSinceMs: 0, accountId })).toEqual(["req_page2", "req_page1"]);
      }
      const [dearer] = await ledger.pageReceipts({ ...all, state: "settled" });
      const charged = dearer?.chargedNanos ?? null;
      expect(await ids({ chargedAtLeastNanos: charged })).toEqual(["req_page2"]);
      expect(await ids({ accountId: "acct_none" })).toEqual([]);

      const entries = await ledger.pageEntries({ accountId: id, before: null, rowsMax: 100 });
      expect(entries.map(({ sequence }) => sequence)).toEqual([6, 5, 4, 3, 2, 1]);
      const account = await ledger.showAccount(id);
      expect(entries[0]).toMatchObject({
        balanceNanos: account.balanceNanos,
        heldNanos: account.heldNanos,
      });
      expect(entries.at(-1)).toMatchObject({ balanceNanos: 10n ** 12n, heldNanos: 0n });
      const older = await ledger.pageEntries({ accountId: id, before: 5, rowsMax: 2 });
      expect(older).toEqual(entries.slice(2, 4));
      const unknown = ledger.pageEntries({ accountId: "acct_none", before: null, rowsMax: 1 });
      expect(await refusal(unknown)).toBe("not_found");

      stage.later(1_000);
      const second = await ledger.createAccount("other", 0n);
      expect(await ledger.pageAccounts({ after: null, rowsMax: 1 })).toEqual([second]);
      const after = { atMs: second.createdAtMs, id: second.id };
      expect(await ledger.pageAccounts({ after, rowsMax: 9 })).toEqual([account]);
      const search = { after: null, rowsMax: 9 };
      expect(await ledger.pageAccounts({ ...search, search: "OTH" })).toEqual([second]);
      expect(await ledger.pageAccounts({ ...search, search: "o%r" })).toEqual([]);
      const both = { ...search, ids: [id, "acct_none", second.id] };
      expect(await ledger.pageAccounts(both)).toEqual([second, account]);
      expect(await ledger.pageAccounts({ ...both, search: "OTH" })).toEqual([second]);
      expect(await ledger.findKey(record.id)).toEqual(record);
      await ledger.expire();
      // The begin of the minute of its requests.
      await expect
        .poll(() => ledger.findKey(record.id))
        .toEqual({ ...record, lastUsedAtMs: 960_000 });
      expect(await ledger.findKey("key_none")).toBeNull();
      const renamed = await ledger.changeAccount(id, { name: "store" });
      expect(renamed).toEqual({ ...account, name: "store", version: account.version + 1 });
      expect(await ledger.showAccount(id)).toEqual(renamed);
    });

    test("the log is never changed, also not by hand", async () => {
      await using stage = await open();
      await stage.ledger.createAccount("shop", 0n);
      await expect(stage.execute("update audit set actor = 'x'")).rejects.toThrow(/never changed/);
      await expect(stage.execute("delete from audit")).rejects.toThrow(/never (changed|removed)/);
    });

    test("a change under a key happens once, and a repeat answers what the first did", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const first = await ledger.administer(once("k", "a")).createAccount("shop", 7n);
      expect(await ledger.administer(once("k", "a")).createAccount("shop", 7n)).toEqual(first);
      expect(await refusal(ledger.administer(once("k", "b")).createAccount("other", 7n))).toBe(
        "idempotency_conflict",
      );
      // Keys are of an operator.
      const other = await ledger.administer(once("k", "a", "oper_2")).createAccount("shop", 7n);
      expect(other.id).not.toBe(first.id);
      const made = await ledger.administer(once("key", "a")).createKey(first.id, "web");
      const again = await ledger.administer(once("key", "a")).createKey(first.id, "web");
      expect(made.secret).toMatch(/^trib_/);
      expect(again).toEqual({ record: made.record, secret: null });
      expect(await ledger.listKeys(first.id)).toHaveLength(1);
      // A refusal is not kept: once it can be, the change happens.
      const refused = ledger.administer(once("r", "a")).creditAccount(first.id, -8n, null);
      expect(await refusal(refused)).toBe("not_possible");
      await ledger.creditAccount(first.id, 1n, null);
      await ledger.administer(once("r", "a")).creditAccount(first.id, -8n, null);
      expect((await ledger.showAccount(first.id)).balanceNanos).toBe(0n);
      stage.later(30 * 86_400_000);
      const anew = await ledger.administer(once("k", "a")).createAccount("shop", 7n);
      expect(anew.id).not.toBe(first.id);
    });

    test("of changes at once under one key one happens", async () => {
      await using stage = await open();
      const { ledger } = stage;
      const { id } = await ledger.createAccount("shop", 0n);
      const top = (): Promise<unknown> =>
        ledger.administer(once("t", "a")).creditAccount(id, 5n, null);
      const codes = await Promise.all(Array.from({ length: 8 }, () => refusal(top())));
      expect(codes).toContain("done");
      expect(new Set(codes.filter((code) => code !== "done"))).not.toContain("fault");
      expect(codes.every((code) => ["done", "idempotency_in_progress"].includes(code))).toBe(true);
      expect((await ledger.showAccount(id)).balanceNanos).toBe(5n);
    });
  });
});
