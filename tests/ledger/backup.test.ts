import { execFile } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { startLoad } from "./ledger-load.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, findPostgres, postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { auditProblems, defaultSettings, temporaryLedger } from "./support.ts";
import { orderOf } from "./orders.ts";

// A backup is taken while requests come and go, is put in place as documented, and has to add up.

const rules = { ...defaultSettings, requestsPerMinute: 1_000_000, leaseMs: 600_000 };

describe("tributary ledger backup", () => {
  test("taken under load it verifies, is restored by putting it in place, and goes on", async () => {
    using file = temporaryLedger();
    const command = openRecordingShell(file.folder, {
      TRIBUTARY_DATABASE_URL: `sqlite:${file.path}`,
    });
    const copy = join(file.folder, "copy.sqlite");
    await using ledger = await openSqliteLedger({ ...rules, path: file.path }, { now: Date.now });
    const load = await startLoad(ledger);
    await load.more(50);
    const result = await command("ledger", "backup", "copy.sqlite", "--json");
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    await load.more(50);
    await load.stop();
    const told = JSON.parse(result.stdout) as { readonly entries: number };
    expect(told).toMatchObject({ path: copy, ok: true, accounts: 4 });
    expect(told.entries).toBeGreaterThan(100);
    expect((statSync(copy).mode & 0o777).toString(8)).toBe("600");
    for (const suffix of ["-wal", "-shm", "-journal"])
      expect([suffix, existsSync(copy + suffix)]).toEqual([suffix, false]);
    // Nothing that came after it is in the copy, and the ledger itself went on.
    const after = await ledger.verify([], true);
    expect([after.ok, after.entries > told.entries]).toEqual([true, true]);

    using restored = temporaryLedger();
    copyFileSync(copy, restored.path);
    await using again = await openSqliteLedger(
      { ...rules, path: restored.path },
      { now: () => Date.now() + 600_001 },
    );
    const before = await again.verify([], true);
    expect(before).toMatchObject({ ok: true, entries: told.entries });
    expect((await ledger.verify(before.heads)).ok).toBe(true);
    expect(await again.expire()).toBeGreaterThanOrEqual(4);
    const caller = await again.authorize(load.secret, true);
    await again.admit(orderOf(caller));
    expect(await again.verify(before.heads)).toMatchObject({ ok: true });
    expect(auditProblems(restored.path)).toEqual([]);
  });

  test("does not write over a file, and leaves none behind when it fails", async () => {
    using file = temporaryLedger();
    const command = openRecordingShell(file.folder, {
      TRIBUTARY_DATABASE_URL: `sqlite:${file.path}`,
    });
    const missing = await command("ledger", "backup", "copy.sqlite");
    expect(missing).toMatchObject({ exitCode: 1, stdout: "" });
    expect(missing.stderr).toContain("There is no ledger at");
    expect(existsSync(file.path)).toBe(false);
    writeFileSync(join(file.folder, "mine"), "mine");
    writeFileSync(
      file.path,
      "no ledger either, but long enough for SQLite to look at it".repeat(20),
    );
    expect(await command("ledger", "backup", "mine")).toMatchObject({ exitCode: 1 });
    expect(readFileSync(join(file.folder, "mine"), "utf8")).toBe("mine");
    const damaged = await command("ledger", "backup", "copy.sqlite", "--json");
    expect(JSON.parse(damaged.stderr)).toMatchObject({ error: { code: "not_possible" } });
    expect(existsSync(join(file.folder, "copy.sqlite"))).toBe(false);
  });
});

const programs = findPostgres("pg_dump");

describe.runIf(postgresTests && programs !== null)("pg_dump", () => {
  let server: PostgresDatabases;
  beforeAll(async () => {
    server = await openPostgresDatabases();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("taken under load is restored as documented, verifies and goes on", async () => {
    using file = temporaryLedger();
    const run = promisify(execFile);
    const program = (name: string): string => join(programs ?? "", name);
    const url = await server.createDatabase("source");
    const path = join(file.folder, "ledger.dump");
    await using ledger = await openPostgresLedger({ ...rules, url }, {});
    const load = await startLoad(ledger);
    await load.more(50);
    // prettier-ignore
    await run(program("pg_dump"), ["--format=custom", "--schema=tributary", `--file=${path}`, url]);
    await load.more(50);
    await load.stop();
    const copy = await server.createDatabase("restored");
    await run(program("pg_restore"), [`--dbname=${copy}`, path]);
    const after = await ledger.verify([]);
    await execute(copy, "update tributary.reservation set lease_until_ms = 0 where state = 'open'");
    await using again = await openPostgresLedger({ ...rules, url: copy }, {});
    const before = await again.verify([], true);
    expect([before.ok, before.entries > 100, before.entries < after.entries]).toEqual([
      true,
      true,
      true,
    ]);
    expect((await ledger.verify(before.heads)).ok).toBe(true);
    expect(await again.expire()).toBeGreaterThanOrEqual(4);
    await again.admit(orderOf(await again.authorize(load.secret, true)));
    expect(await again.verify(before.heads)).toMatchObject({ ok: true });
  });
});
