import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { Client } from "pg";
import { describe, expect, it } from "vitest";
import { openArchiveFile } from "../../src/ledger/archive/archive-file.ts";
import { type ArchivedPart, readArchive } from "../../src/ledger/archive/archive-lines.ts";
import { type Archived, archiveBefore } from "../../src/ledger/archive/archive-run.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { usageToJson } from "../../src/ledger/usage/usage-json.ts";
import type { UsageQuery } from "../../src/ledger/usage/usage-query.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import {
  type RunStatement,
  writeManyReceipts,
  writtenAccount,
  writtenKey,
} from "../doubles/many-receipts.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { postgresTests } from "./postgres-server.ts";
import { openPostgresStatements, openSqliteStatements } from "./run-statement.ts";
import { defaultSettings, temporaryLedger } from "./support.ts";

// Half of a ledger's receipts are archived, on both stores: what is left of them has to be as good as they were.

const dayMs = 86_400_000;
const untilMs = Date.parse("2026-07-01T00:00:00Z");
const sinceMs = untilMs - 200 * dayMs;
// A Friday: a week of usage has begun on the day before.
const beforeMs = untilMs - 103 * dayMs;
const wholeMs = 900_000;

interface Opened extends AsyncDisposable {
  readonly ledger: StoreLedger;
  readonly run: RunStatement;
  readonly folder: string;
  readonly url: string;
  /** Bytes that the ledger has on the disk, what is free in it and will be used again among them. */
  room(): Promise<number>;
}

async function openSqlite(): Promise<Opened> {
  await using opened = new AsyncDisposableStack();
  const { folder, path } = opened.use(temporaryLedger());
  const ledger = opened.use(
    await openSqliteLedger(
      { ...defaultSettings, path },
      { now: () => untilMs, telemetry: { ledgerRetry: () => {} } },
    ),
  );
  const { run } = opened.use(openSqliteStatements(path));
  const owned = opened.move();
  return {
    ledger,
    run,
    folder,
    url: `sqlite:${path}`,
    async room() {
      const [pages] = await run("pragma page_count");
      return Number(pages?.["page_count"]) * 4_096;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Transactions that began before $1, in any database: while one of them runs, a snapshot taken here is as old as that one, and a
 * vacuum beside it leaves what was removed since.
 */
const olderThan = `select pid from pg_stat_activity
  where pid <> pg_backend_pid() and greatest(age(backend_xmin), age(backend_xid)) >= age($1::xid)`;

async function openPostgres(): Promise<Opened> {
  await using opened = new AsyncDisposableStack();
  const { folder } = opened.use(temporaryLedger());
  const server = opened.use(await openPostgresDatabases());
  const url = await server.createDatabase("archive");
  const ledger = opened.use(
    await openPostgresLedger({ ...defaultSettings, url }, { now: () => untilMs }),
  );
  const { run } = opened.use(await openPostgresStatements(url));
  const owned = opened.move();
  return {
    ledger,
    run,
    folder,
    url,
    async room() {
      // As autovacuum does by itself, which the tests' server is without: pages of indexes that one run found empty are
      // given out again by the next, once there was a transaction between the two.
      for (let turn = 0; turn < 2; turn += 1) {
        const [now] = await run("select pg_current_xact_id()::xid::text as id");
        await expect.poll(() => run(olderThan, String(now?.["id"]))).toEqual([]);
        await run("vacuum tributary.reservation, tributary.entry");
      }
      // What a receipt takes: the tables of sums have a few pages of their own from the first row on.
      const [sum] = await run(
        "select pg_total_relation_size('tributary.reservation') + pg_total_relation_size('tributary.entry') as bytes",
      );
      return Number(sum?.["bytes"]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openWritten(open: () => Promise<Opened>): Promise<Opened> {
  const opened = await open();
  await writeManyReceipts(opened.run, { receipts: 400, accounts: 3, sinceMs, untilMs });
  return opened;
}

const archiveHalf = async (
  { folder, ledger }: Pick<Opened, "folder" | "ledger">,
  rest: () => Promise<void> = () => Promise.resolve(),
): Promise<Archived & { readonly path: string }> => {
  await using file = openArchiveFile(folder, untilMs);
  const accountIds = (await ledger.listAccounts()).map(({ id }) => id);
  const done = await archiveBefore(ledger, { accountIds, beforeMs }, { file, rest });
  return { ...done, path: join(folder, file.name) };
};

const everything: UsageQuery = {
  by: ["day"],
  accountId: null,
  keyId: null,
  format: null,
  sinceMs: null,
  untilMs: null,
  timezone: "UTC",
};
const questions: readonly UsageQuery[] = [
  everything,
  { ...everything, by: ["hour"], sinceMs: beforeMs - 30 * dayMs, untilMs: beforeMs + dayMs },
  { ...everything, by: ["day", "account"], timezone: "Asia/Kathmandu" },
  { ...everything, by: ["month", "label"] },
  { ...everything, by: ["key", "format"], sinceMs: sinceMs - (sinceMs % wholeMs) + wholeMs },
  { ...everything, by: ["key", "label"], sinceMs: beforeMs },
  { ...everything, by: ["month"], accountId: writtenAccount(0), timezone: "America/New_York" },
];
const usage = (ledger: StoreLedger): Promise<unknown> =>
  Promise.all(
    questions.map(async (query) =>
      (await ledger.sumUsage(query)).map((row) => usageToJson(row, query.by)),
    ),
  );
const count = async ({ run }: Opened, where = "true"): Promise<number> => {
  const [row] = await run(`select count(*) as count from tributary.reservation where ${where}`);
  return Number(row?.["count"]);
};
async function partsOf(path: string): Promise<readonly ArchivedPart[]> {
  const last = new Map<string, ArchivedPart>();
  const lines = createInterface({ input: Readable.from(readFileSync(path)) });
  for await (const part of readArchive(lines)) last.set(part.accountId, part);
  return [...last.values()];
}

const stores = [
  ["SQLite", openSqlite, true],
  ["PostgreSQL", openPostgres, postgresTests],
] as const;

describe.each(stores.filter(([, , isThere]) => isThere))(
  "archived receipts on %s",
  (_name, open) => {
    it("leave the ledger for a file, and usage, budgets and verify go on without them", async () => {
      await using opened = await openWritten(open);
      const { folder, ledger, run, url } = opened;
      const budget = { amountNanos: 10n ** 15n, period: "total", timezone: "UTC" } as const;
      const spent = async (id: string): Promise<bigint | undefined> =>
        (await ledger.changeKey(id, { budget })).budget?.spentNanos;
      const { id: keyId } = writtenKey(0);
      const spentBefore = await spent(keyId);
      const month = { ...budget, period: "month" } as const;
      await ledger.changeKey(writtenKey(1).id, { budget: month });
      const before = await usage(ledger);
      const old = await count(opened, `resolved_at_ms < ${String(beforeMs)}`);
      expect(old).toBeGreaterThan(100);
      const { path, receipts } = await archiveHalf(opened);
      expect(receipts).toBe(old);
      expect(await count(opened, `resolved_at_ms < ${String(beforeMs)}`)).toBe(0);
      expect(await count(opened)).toBe(400 - old);
      expect((await ledger.verify([])).problems).toEqual([]);
      expect(await usage(ledger)).toEqual(before);
      expect(await spent(keyId)).toBe(spentBefore);
      expect((await ledger.verify([])).problems).toEqual([]);
      // What is asked of an archived time in more detail than is kept is refused, not answered wrongly.
      for (const query of [
        { ...everything, by: ["label", "key"] },
        { ...everything, sinceMs: sinceMs + 1_000 },
        { ...everything, by: ["day", "label"], timezone: "America/New_York" },
      ] as const)
        await expect(ledger.sumUsage(query)).rejects.toMatchObject({ param: "since" });
      // The file has what was in the ledger, and a later one goes on where it ends.
      const parts = await partsOf(path);
      expect(parts.reduce((sum, one) => sum + one.receipts, 0)).toBe(old);
      const [{ accountId } = { accountId: "" }] = parts;
      const [line = ""] = readFileSync(path, "utf8").split("\n").slice(1);
      const receipt = JSON.parse(line) as { id: string; charged: string };
      await expect(ledger.showReceipt(receipt.id)).rejects.toMatchObject({ code: "not_found" });
      const facts = { kind: "refund", receipt: receipt.id } as const;
      await expect(ledger.creditAccount(accountId, 1n, facts)).rejects.toThrow("archived");
      expect(await archiveHalf(opened)).toMatchObject({ receipts: 0, accounts: 0 });
      expect(readdirSync(folder).filter((name) => name.endsWith(".jsonl"))).toHaveLength(1);
      const command = openRecordingShell(folder, { TRIBUTARY_DATABASE_URL: url });
      const check = async (): Promise<readonly string[]> => {
        const { stdout } = await command("ledger", "check-archive", path, "--json");
        return (JSON.parse(stdout) as { problems: readonly string[] }).problems;
      };
      expect(await check()).toEqual([]);
      const text = readFileSync(path, "utf8");
      writeFileSync(path, text.replace('"output_tokens":', '"output_tokens":1'));
      expect(String(await check())).toContain("not as they were archived");
      writeFileSync(path, text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1));
      expect(String(await check())).toContain("missing after");
      writeFileSync(path, text);
      appendFileSync(path, "{}\n");
      expect(String(await check())).toContain("no receipt of an archive");
      for (const [damage, words] of [
        ["update tributary.archive set charged_nanos = charged_nanos + 1", "differ"],
        [
          "update tributary.archive set charged_nanos = charged_nanos - 1, total_9 = coalesce(total_9, 0) + 1",
          "not what their receipts came to",
        ],
        ["update tributary.archive set total_9 = total_9 - 1", "ok"],
        [
          "update tributary.usage_quarter set output_tokens = output_tokens + 1 where begin_ms = (select min(begin_ms) from tributary.usage_quarter)",
          "other sums of archived",
        ],
      ] as const) {
        await run(damage);
        const { ok, problems } = await ledger.verify([]);
        if (words === "ok") expect(problems).toEqual([]);
        else if (words === "differ")
          expect(problems.map(({ code }) => code)).toContain("checkpoint-differs");
        else expect(problems.map(({ message }) => message).join("\n")).toContain(words);
        expect(ok).toBe(words === "ok");
      }
    });

    it("leave room for as many others: the ledger stays as large as it was", async () => {
      await using opened = await open();
      const twoHoursMs = 7_200_000;
      const write = (firstAccount: number, endsMs: number): Promise<void> =>
        writeManyReceipts(opened.run, {
          receipts: 1_000,
          accounts: 3,
          firstAccount,
          sinceMs: endsMs - twoHoursMs,
          untilMs: endsMs,
        });
      await write(0, beforeMs - dayMs);
      await write(3, untilMs - dayMs);
      const full = await opened.room();
      expect((await archiveHalf(opened)).receipts).toBe(1_000);
      // Sums are kept of them, and where their chains end; as many receipts more without it would be half as much again.
      expect(await opened.room()).toBeLessThan(full * 1.2);
      await write(6, untilMs);
      expect(await opened.room()).toBeLessThan(full * 1.2);
      expect((await opened.ledger.verify([])).problems).toEqual([]);
    });

    it("are removed only as they are in the file, and with what ran, was credited and refunded meanwhile", async () => {
      await using opened = await openWritten(open);
      const { ledger } = opened;
      const [first] = await opened.run(
        `select request_id, account_id, charged_nanos from tributary.reservation
       where charged_nanos > 10 and resolved_at_ms < ${String(beforeMs)} order by account_id, resolved_sequence limit 1`,
      );
      const receipt = String(first?.["request_id"]);
      const accountId = String(first?.["account_id"]);
      let rests = 0;
      // A refund comes between reading a batch and removing it.
      const interrupted: StoreLedger = {
        ...ledger,
        async archiveReceipts(batch) {
          rests += 1;
          if (rests === 1) await ledger.creditAccount(accountId, 3n, { kind: "refund", receipt });
          return ledger.archiveReceipts(batch);
        },
      };
      const caller = await ledger.authorize(writtenKey(0).secret, false);
      const order = orderOf(caller);
      await ledger.admit(order);
      const one = await archiveHalf({ folder: opened.folder, ledger: interrupted });
      expect((await ledger.showReceipt(receipt)).refundedNanos).toBe(3n);
      await ledger.settle(settlementOf(order));
      const other = await archiveHalf(opened);
      expect(one.receipts + other.receipts).toBe(400 - (await count(opened)) + 1);
      const lines = [one, other].flatMap(({ path }) =>
        readdirSync(opened.folder).includes(path.slice(opened.folder.length + 1))
          ? readFileSync(path, "utf8").split("\n")
          : [],
      );
      expect(lines.filter((line) => line.includes(receipt))).toHaveLength(1);
      expect(lines.find((line) => line.includes(receipt))).toContain('"refunded":"0.000000003"');
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    it.runIf(_name === "PostgreSQL")("hold up no request of their account", async () => {
      await using opened = await openWritten(open);
      const { folder, ledger, run, url } = opened;
      const accountId = writtenAccount(0);
      const [first] = await run(
        "select request_id from tributary.reservation where account_id = $1 and charged_nanos > 10 order by resolved_sequence limit 1",
        accountId,
      );
      const other = new Client({ connectionString: url });
      await other.connect();
      await other.query("begin; lock table tributary.archive_file in share mode");
      await using file = openArchiveFile(folder, untilMs);
      const archiving = archiveBefore(
        ledger,
        { accountIds: [accountId], beforeMs },
        { file, rest: () => Promise.resolve() },
      );
      const waits = "select 1 as one from pg_locks where not granted and relation is not null";
      await expect.poll(() => run(waits)).toHaveLength(1);
      // Its receipts are being removed, and it goes on.
      const order = orderOf(await ledger.authorize(writtenKey(0).secret, false));
      await ledger.admit(order);
      await ledger.settle(settlementOf(order));
      const receipt = String(first?.["request_id"]);
      const refund = ledger.creditAccount(accountId, 3n, { kind: "refund", receipt });
      const refused = expect(refund).rejects.toThrow("archived");
      await expect
        .poll(async () => (await run("select 1 as one from pg_locks where not granted")).length)
        .toBe(2);
      await other.query("rollback");
      await other.end();
      expect((await archiving).receipts).toBeGreaterThan(0);
      await refused;
      expect((await ledger.verify([])).problems).toEqual([]);
    });

    it("had entries that are rolled up in small steps", async () => {
      await using opened = await open();
      const { ledger, run } = opened;
      const { id } = await ledger.createAccount("a", 10n ** 12n);
      const { secret } = await ledger.createKey(id, "a");
      for (let round = 0; round < 5; round += 1) {
        const order = orderOf(await ledger.authorize(secret, false));
        await ledger.admit(order);
        await ledger.settle(settlementOf(order));
      }
      await using file = openArchiveFile(opened.folder, untilMs);
      const rest = (): Promise<void> => Promise.resolve();
      const order = { accountIds: [id], beforeMs: untilMs + 1 };
      const done = await archiveBefore(ledger, order, { file, rest });
      expect(done).toMatchObject({ receipts: 5, entries: 11 });
      expect(await run("select kind from tributary.entry")).toEqual([{ kind: "checkpoint" }]);
      expect((await ledger.verify([])).problems).toEqual([]);
    });
  },
);
