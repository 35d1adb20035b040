import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { movedTables } from "../../src/ledger/moved-tables.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { openStore, type SqliteStore } from "../../src/ledger/sqlite/store.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { defaultSettings, openTill, run, temporaryLedger } from "./support.ts";

// A ledger that was used for a while goes from SQLite to PostgreSQL, by the command that operators have.

let server: PostgresDatabases;
let databases = 0;

beforeAll(async () => {
  if (postgresTests) server = await openPostgresDatabases();
});
afterAll(async () => {
  if (postgresTests) await server[Symbol.asyncDispose]();
});

/** Requests of every ending, a disabled account, a revoked key, a checkpoint and two keys that seal. */
function fill(store: SqliteStore, requests: number): void {
  const ann = openTill(store, "ann", 10_000_000_000n);
  const bob = openTill(store, "bob", 9_007_199_254_740_993n);
  run(store, "createAccount", { id: "acct_new", name: "né \"'\\", creditNanos: 0n });
  const caller = ann.authorize();
  for (let at = 0; at < requests; at += 1) {
    ann.admit(`req_a${String(at)}`, { caller }, at);
    ann.settle(`req_a${String(at)}`, at % 3 === 0 ? null : [100, 20], at + 1);
  }
  bob.admit("req_b1", {}, 5);
  run(store, "expire", null, 70_000);
  run(store, "creditAccount", { id: "acct_bob", amountNanos: -7n, note: "a\nnote = \\ 'ü'" }, 9);
  run(store, "setAccountStatus", { id: "acct_bob", status: "disabled" });
  run(store, "revokeKey", { id: "key_bob" }, 10);
  run(store, "checkpoint", { accountId: "acct_ann", beforeMs: 5 }, 2_000);
  run(store, "sealKeys", { id: "seal1", secret: new Uint8Array(32).fill(200) }, 3);
}

interface Move extends Disposable {
  readonly path: string;
  readonly url: string;
  readonly command: ReturnType<typeof openRecordingShell>;
}

async function prepare(
  also: (store: SqliteStore) => void = () => {},
  requests = 10,
): Promise<Move> {
  const file = temporaryLedger();
  const path = join(file.folder, "data", "ledger.sqlite");
  mkdirSync(dirname(path));
  using store = openStore({ ...defaultSettings, path });
  fill(store, requests);
  also(store);
  databases += 1;
  return {
    path,
    url: await server.createDatabase(`moved_${String(databases)}`),
    command: openRecordingShell(file.folder, {}),
    [Symbol.dispose]: () => {
      file[Symbol.dispose]();
    },
  };
}

/** Every row of every table, as text; truth values and bytes as SQLite has them. */
function sqliteRows(path: string): unknown {
  using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  return movedTables.map(({ columns, name, order }) =>
    database
      .prepare(`select ${columns.join(", ")} from ${name} order by ${order}`)
      .all()
      .map((row) => Object.values(row).map(plain)),
  );
}

async function postgresRows(url: string): Promise<unknown> {
  const tables: unknown[] = [];
  for (const { columns, name, order } of movedTables) {
    const rows = await execute(
      url,
      `select ${columns.join(", ")} from tributary.${name} order by ${order}`,
    );
    tables.push(rows.map((row) => Object.values(row).map(plain)));
  }
  return tables;
}

/** As docs/ledger.md tells it. */
function takeMarkAway(path: string): void {
  using database = new DatabaseSync(path);
  database.exec("pragma application_id = 1414678850");
}

function plain(value: unknown): string | null {
  if (value === null) return null;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (typeof value === "boolean") return value ? "1" : "0";
  if (typeof value === "bigint" || typeof value === "number") return value.toString();
  if (typeof value === "string") return value;
  throw new Error("a value of another type");
}

describe.runIf(postgresTests)("tributary ledger move", () => {
  test("copies every row, verifies both and says so", async () => {
    // More than travel in one piece.
    using move = await prepare(undefined, 1_200);
    const result = await move.command("ledger", "move", "--to", move.url, "--json");
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    expect(JSON.parse(result.stdout)).toMatchObject({
      ok: true,
      accounts: 3,
      rows: { account: 3, api_key: 2, reservation: 1_201, checkpoint: 1, seal_key: 1 },
    });
    const rows = await postgresRows(move.url);
    expect(rows).toEqual(sqliteRows(move.path));
    takeMarkAway(move.path);
    const parts = { now: Date.now };
    await using from = await openSqliteLedger({ ...defaultSettings, path: move.path }, parts);
    await using to = await openPostgresLedger({ ...defaultSettings, url: move.url }, {});
    const [one, other] = await Promise.all([from.verify([], true), to.verify([], true)]);
    expect([other.ok, other.heads]).toEqual([true, one.heads]);
    expect(await to.showReceipt("req_a1")).toEqual(await from.showReceipt("req_a1"));
    const [toKeys, fromKeys] = await Promise.all([to.sealKeys(), from.sealKeys()]);
    expect(toKeys.map(({ id, secret }) => [id, secret])).toEqual(
      fromKeys.map(({ id, secret }) => [id, secret]),
    );
    // What is written there next goes on from what was moved.
    await to.creditAccount("acct_ann", 5n, null);
    expect((await to.verify(one.heads)).ok).toBe(true);
  });

  test("a second time the target is not empty, and stays as it is", async () => {
    using move = await prepare();
    expect(await move.command("ledger", "move", "--to", move.url)).toMatchObject({ exitCode: 0 });
    const before = await postgresRows(move.url);
    takeMarkAway(move.path);
    const again = await move.command("ledger", "move", "--to", move.url);
    expect(again).toMatchObject({ exitCode: 1, stdout: "" });
    expect(again.stderr).toContain("is not empty");
    expect(await postgresRows(move.url)).toEqual(before);
  });

  test("the file is opened by nobody afterwards, until its mark is taken away", async () => {
    using move = await prepare();
    const { stdout } = await move.command("ledger", "move", "--to", move.url);
    expect(stdout).toContain("nothing opens it any more");
    const refusal = {
      exitCode: 1,
      stderr: expect.stringContaining("moved to PostgreSQL") as string,
    };
    for (const words of [["account", "list"], ["verify"], ["serve"], ["key", "revoke", "key_ann"]])
      expect(await move.command(...words)).toMatchObject(refusal);
    expect(await move.command("ledger", "move", "--to", move.url)).toMatchObject(refusal);
    expect(sqliteRows(move.path)).toEqual(await postgresRows(move.url));
    takeMarkAway(move.path);
    expect(await move.command("verify")).toMatchObject({ exitCode: 0 });
  });

  test("a ledger that only has a key that seals is not empty either", async () => {
    using move = await prepare();
    {
      await using started = await openPostgresLedger({ ...defaultSettings, url: move.url }, {});
      await started.sealKeys();
    }
    const { exitCode, stderr } = await move.command("ledger", "move", "--to", move.url);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("is not empty")]);
    expect(await execute(move.url, "select id from tributary.account")).toEqual([]);
  });

  test("not while a request runs; what a dead process held is given back first", async () => {
    const admitAt = (nowMs: number) => (store: SqliteStore) => {
      openTill(store, "eve", 10_000_000_000n).admit("req_e1", {}, nowMs);
    };
    using running = await prepare(admitAt(Date.now()));
    const refused = await running.command("ledger", "move", "--to", running.url);
    expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
    expect(refused.stderr).toContain("1 request runs");
    expect(refused.stderr).toContain("Stop the service");
    using dead = await prepare(admitAt(Date.now() - 60_001));
    expect(await dead.command("ledger", "move", "--to", dead.url)).toMatchObject({ exitCode: 0 });
    expect(
      await execute(
        dead.url,
        "select state from tributary.reservation where request_id = 'req_e1'",
      ),
    ).toEqual([{ state: "expired" }]);
  });

  test("a row that cannot be copied takes everything back", async () => {
    using move = await prepare();
    {
      using database = new DatabaseSync(move.path);
      // No text of PostgreSQL may contain it.
      database.exec("update account set name = 'a' || char(0) where id = 'acct_new'");
      database.exec("update seal_key set id = 'a' || char(0)");
      database.exec("update account set name = 'a' where id = 'acct_new'");
    }
    const result = await move.command("ledger", "move", "--to", move.url, "--json");
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(JSON.parse(result.stderr)).toMatchObject({ error: { code: "not_possible" } });
    expect(result.stderr).toContain("Nothing was moved");
    expect(await move.command("account", "list")).toMatchObject({ exitCode: 0 });
    expect(await postgresRows(move.url)).toEqual(movedTables.map(() => []));
  });

  test("not when the ledger does not add up", async () => {
    using move = await prepare();
    {
      using database = new DatabaseSync(move.path);
      database.exec("update account set balance_nanos = balance_nanos + 1 where id = 'acct_ann'");
    }
    const { exitCode, stderr } = await move.command("ledger", "move", "--to", move.url);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("1 problem,")]);
  });

  test("says what it needs", async () => {
    using move = await prepare();
    expect(await move.command("ledger", "move")).toMatchObject({ exitCode: 2 });
    expect(await move.command("ledger", "move", "--to", "sqlite:x")).toMatchObject({ exitCode: 2 });
    const nowhere = await move.command("ledger", "move", "--to", `${move.url}&port=1`);
    expect(nowhere).toMatchObject({ exitCode: 1, stdout: "" });
    expect(nowhere.stderr).toContain("cannot be opened");
  });
});
