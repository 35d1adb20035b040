import { execFileSync } from "node:child_process";
import {
  closeSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import type { Caller } from "../../src/ledger/ledger.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openLog } from "../../src/telemetry/log.ts";
import { openTelemetry, type ServiceTelemetry } from "../../src/telemetry/telemetry.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { startThreadsFromSources } from "../setup/bundled-threads.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { execute, postgresTests, startPostgres, type PostgresServer } from "./postgres-server.ts";
import { defaultSettings } from "./support.ts";

// What an operator reads when the ledger fails: in the log at level `warn`, and from a command. A row a fault: how it is
// made, the store's own words, and the sentence that names cause and remedy.

interface Watched {
  readonly telemetry: ServiceTelemetry;
  /** The lines of level `warn` and above so far. */
  lines(): readonly LogLine[];
}

interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly cause?: Cause;
}

interface Cause {
  readonly name: string;
  readonly code: string | null;
  readonly message: string | null;
  readonly remedy?: string;
  readonly stack: string | null;
  readonly cause: Cause | null;
}

function watchLog(): Watched {
  const written: string[] = [];
  const log = openLog({
    level: "warn",
    format: "json",
    terminal: false,
    destination: { write: (text) => void written.push(text), flush: () => {} },
  });
  return {
    telemetry: openTelemetry({ log, secrets: [] }),
    lines: () => written.map((line) => JSON.parse(line) as LogLine),
  };
}

/** The innermost cause that a line tells. */
function faultOf(line: LogLine | undefined): Cause | null {
  let cause = line?.cause ?? null;
  while (cause !== null && cause.name !== "StoreFault") cause = cause.cause;
  return cause;
}

interface Said {
  readonly code: string;
  readonly message: RegExp;
  readonly remedy: RegExp;
}

/** A request that fails is one line of the log, as the service writes it. */
async function failedRequest(ledger: StoreLedger, caller: Caller, log: Watched): Promise<void> {
  const failure: unknown = await ledger.admit(orderOf(caller)).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "overloaded" });
  if (!(failure instanceof Failure)) throw new Error("no failure");
  expect(failure.message).toBe(
    "The service cannot reach its ledger at the moment. Try again in a few seconds.",
  );
  log.telemetry.failed({ requestId: "req_1", code: failure.code, cause: failure });
}

function expectSaid(lines: readonly LogLine[], { code, message, remedy }: Said): void {
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const fault = faultOf(line);
    expect(line.level).toBe("warn");
    expect(fault).toMatchObject({ name: "StoreFault", code });
    expect(fault?.message).toMatch(message);
    expect(fault?.remedy).toMatch(remedy);
  }
}

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tributary-faults-"));
  folders.push(folder);
  return folder;
}

/** A command on the ledger of a folder; what it prints for an operator's fault has no stack. */
async function commandSays(folder: string, ...words: readonly string[]): Promise<string> {
  const run = openRecordingShell(folder, {
    TRIBUTARY_DATABASE_URL: `sqlite:${join(folder, "ledger.sqlite")}`,
  });
  const { exitCode, stderr, stdout } = await run(...words);
  expect([exitCode, stdout]).toEqual([1, ""]);
  expect(stderr).not.toMatch(/^\s+at /m);
  const lines = stderr.trimEnd().split("\n");
  expect(lines.slice(0, -1).every((line) => line.startsWith("ledger: "))).toBe(true);
  return lines.at(-1) ?? "";
}

interface Scene extends AsyncDisposable {
  readonly ledger: StoreLedger;
  readonly caller: Caller;
  readonly log: Watched;
  readonly path: string;
}

async function openScene(folder: string, busyMs = 20): Promise<Scene> {
  const log = watchLog();
  const path = join(folder, "ledger.sqlite");
  const settings = { ...defaultSettings, synchronous: "full" as const, busyMs, path };
  const parts = { now: Date.now, telemetry: log.telemetry };
  const ledger = await openSqliteLedger(settings, parts);
  const account = await ledger.createAccount("test", 10n ** 15n);
  const { secret } = await ledger.createKey(account.id, "test");
  const caller = await ledger.authorize(secret, true);
  return {
    ledger,
    caller,
    log,
    path,
    async [Symbol.asyncDispose]() {
      log.telemetry[Symbol.dispose]();
      await ledger[Symbol.asyncDispose]();
    },
  };
}

/** A small disk of its own, which only root can make. */
function mountDisk(megabytes: number): Disposable & { readonly folder: string; readOnly(): void } {
  const folder = newFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${String(megabytes)}m`, "tmpfs", folder]);
  return {
    folder,
    readOnly: () => void execFileSync("mount", ["-o", "remount,ro", folder]),
    [Symbol.dispose]: () => void execFileSync("umount", ["-l", folder]),
  };
}

function canMount(): boolean {
  if (process.getuid?.() !== 0) return false;
  try {
    using disk = mountDisk(1);
    return statSync(disk.folder).isDirectory();
  } catch {
    return false;
  }
}

describe.skipIf(!canMount())("a disk of its own", () => {
  const full: Said = {
    code: "SQLITE_FULL",
    message: /^database or disk is full$/,
    remedy: /^The ledger's disk is full\. Make room on it: .*settlements wait\.$/,
  };

  test("that is full: new requests fail, settlements wait, readiness fails, commands say why", async () => {
    using disk = mountDisk(4);
    await using scene = await openScene(disk.folder);
    const { caller, ledger, log } = scene;
    const admitted = orderOf(caller);
    await ledger.admit(admitted);
    const filler = join(disk.folder, "filler");
    fill(filler);
    await failedRequest(ledger, caller, log);
    const settling = ledger.settle(settlementOf(admitted));
    await expect.poll(() => log.lines().some(({ event }) => event === "ledger retry")).toBe(true);
    await expect(ledger.check()).rejects.toMatchObject({ cause: { reason: "disk-full" } });
    expectSaid(log.lines(), full);
    expect(await commandSays(disk.folder, "account", "create", "more")).toMatch(
      /The ledger's disk is full\. Make room on it/,
    );
    rmSync(filler);
    expect((await settling).applied).toBe(true);
    expect((await ledger.showAccount(caller.accountId)).heldNanos).toBe(0n);
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });

  test("that is mounted read-only: a command says so", async () => {
    using disk = mountDisk(4);
    await (await openScene(disk.folder))[Symbol.asyncDispose]();
    disk.readOnly();
    expect(await commandSays(disk.folder, "account", "list")).toMatch(
      /cannot be opened: .*read-?only.*\. .*(mount its disk writable|is writable)/,
    );
  });
});

/** Writes until there is no room for another byte. */
function fill(path: string): void {
  const descriptor = openSync(path, "w");
  for (let size = 65_536; size >= 1;) {
    // Where there is no room for as much, a smaller piece may fit.
    if (!isWritten(descriptor, size)) size = Math.floor(size / 2);
  }
  closeSync(descriptor);
}

function isWritten(descriptor: number, size: number): boolean {
  try {
    return writeSync(descriptor, new Uint8Array(size)) === size;
  } catch {
    return false;
  }
}

describe("a ledger's file", () => {
  test("that is damaged", async () => {
    const folder = newFolder();
    await using scene = await openScene(folder);
    const { caller, ledger, log, path } = scene;
    for (let request = 0; request < 40; request += 1) {
      const order = orderOf(caller);
      await ledger.admit(order);
      await ledger.settle(settlementOf(order));
    }
    damage(path);
    await failedRequest(ledger, caller, log);
    expectSaid(log.lines(), {
      code: "SQLITE_CORRUPT",
      message: /^database disk image is malformed$/,
      remedy: /^The ledger's file is damaged\. .*newest backup.*docs\/ledger\.md/,
    });
    expect(await commandSays(folder, "usage")).toMatch(
      /database disk image is malformed.*The ledger's file is damaged\. .*newest backup/,
    );
  });

  test("that another process keeps locked", async () => {
    const folder = newFolder();
    await using scene = await openScene(folder);
    const { caller, ledger, log, path } = scene;
    using other = new DatabaseSync(path);
    other.exec("begin immediate");
    await failedRequest(ledger, caller, log);
    expectSaid(log.lines(), {
      code: "SQLITE_BUSY",
      message: /^database is locked$/,
      remedy: /^Another process keeps the ledger locked\. End it, or try again/,
    });
    // As a command prints it, without its five seconds.
    await expect(ledger.createAccount("more", 0n)).rejects.toThrow(
      /^Another process keeps the ledger locked\. End it, .*\(database is locked\)$/,
    );
    other.exec("rollback");
  });

  test("that is no ledger, and a folder that cannot be made", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "ledger.sqlite"), "this is no database, only words. ".repeat(100));
    expect(await commandSays(folder, "account", "create", "more")).toMatch(
      /cannot be opened: file is not a database\. The file is no ledger.*Name another file in TRIBUTARY_DATABASE_URL/,
    );
    const other = newFolder();
    writeFileSync(join(other, "file"), "");
    expect(await commandSays(join(other, "file"), "account", "create", "more")).toMatch(
      /cannot be opened: .*Check that its folder exists/,
    );
  });

  test("that a bug cannot read: the log has class, code and place, and no words of a caller", async () => {
    using _ = startThreadsFromSources();
    const folder = newFolder();
    await using scene = await openScene(folder);
    const { caller, ledger, log } = scene;
    const order = { ...orderOf(caller), inputBound: 0.5 };
    const failure: unknown = await ledger.admit(order).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "internal" });
    log.telemetry.failed({ requestId: "req_1", code: "internal", cause: failure });
    const fault = faultOf(log.lines()[0]);
    expect(fault).not.toHaveProperty("remedy");
    expect(fault?.cause?.name).toMatch(/Error$/);
    expect(fault?.cause?.stack).toMatch(/ledger\/sqlite\//);
  });
});

/** Overwrites every page but the first; what is in the log is written back before, and memory is left behind by others' writes. */
function damage(path: string): void {
  {
    using database = new DatabaseSync(path);
    database.exec("pragma wal_checkpoint(truncate)");
  }
  const descriptor = openSync(path, "r+");
  const garbage = new Uint8Array(4_096).fill(0xee);
  for (let at = 4_096; at < statSync(path).size; at += 4_096)
    writeSync(descriptor, garbage, 0, garbage.length, at);
  closeSync(descriptor);
  using database = new DatabaseSync(path);
  // Another process has written: everyone reads the pages again.
  database.exec("pragma user_version = 3");
}

describe.skipIf(!postgresTests)("a database", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function openOn(url: string, log: Watched): Promise<StoreLedger> {
    const { concurrencyPerAccount, leaseMs, prices, requestsPerMinute } = defaultSettings;
    return openPostgresLedger(
      { concurrencyPerAccount, leaseMs, prices, requestsPerMinute, url, busyMs: 500 },
      { telemetry: log.telemetry },
    );
  }

  async function postgresCommandSays(
    url: string,
    words: readonly string[] = ["account", "list"],
  ): Promise<string> {
    const run = openRecordingShell(newFolder(), { TRIBUTARY_DATABASE_URL: url });
    const { exitCode, stderr, stdout } = await run(...words);
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stderr.trimEnd()).not.toContain("\n");
    return stderr;
  }

  test("that is away at the start, and one that does not exist", async () => {
    const away = await postgresCommandSays("postgres://me:MARKER@127.0.0.1:1/ledger");
    expect(away).toMatch(
      /The ledger postgres:\/\/127\.0\.0\.1:1\/ledger cannot be opened: .*ECONNREFUSED.*The database cannot be reached\. Check that its server runs/,
    );
    expect(away).not.toContain("MARKER");
    expect(await postgresCommandSays(server.url("nowhere"))).toMatch(
      /database "nowhere" does not exist\. There is no database of this name\. Create it, or name another/,
    );
  });

  test("that refuses the password", async () => {
    const url = await server.createDatabase("secretive");
    await execute(url, "create role me login password 'right'");
    const rules = join(dirname(server.socket), "data", "pg_hba.conf");
    writeFileSync(rules, "local secretive me scram-sha-256\nlocal all all trust\n");
    await execute(url, "select pg_reload_conf()");
    const address = (password: string): string =>
      url.replace("ledger@", `me${password === "" ? "" : `:${password}`}@`);
    await expect.poll(() => execute(address("right"), "select 1").then(() => "", String)).toBe("");
    const said =
      /The database refuses this user or its password\. Correct them .*percent-encoded, .*PGPASSWORD/;
    const wrong = await postgresCommandSays(address("MARKER"));
    expect(wrong).toMatch(/password authentication failed for user "me"/);
    expect(wrong).toMatch(said);
    expect(wrong).not.toContain("MARKER");
    expect(await postgresCommandSays(address(""))).toMatch(said);
    // The right one, of a user that may do nothing there.
    expect(await postgresCommandSays(address("right"), ["account", "create", "more"])).toMatch(
      /permission denied.*does not permit this user .*Make it the owner/,
    );
  });

  test("that becomes read-only, and that goes away while requests run", async () => {
    const url = await server.createDatabase("going");
    const log = watchLog();
    await using ledger = await openOn(url, log);
    const account = await ledger.createAccount("test", 10n ** 15n);
    const { secret } = await ledger.createKey(account.id, "test");
    const caller = await ledger.authorize(secret, true);

    await execute(url, `alter database going set default_transaction_read_only = on`);
    await execute(
      url,
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'going' and pid <> pg_backend_pid()",
    );
    await expect
      .poll(() =>
        ledger.check().then(
          () => null,
          ({ cause }: Failure) => cause,
        ),
      )
      .toMatchObject({ code: "25006", reason: "database-read-only" });
    await failedRequest(ledger, caller, log);
    expectSaid(log.lines().slice(-1), {
      code: "25006",
      message: /read-only transaction/,
      remedy: /^The database may only be read: it is a standby.*Name the primary/,
    });

    const admitted = orderOf(caller);
    await execute(
      server.url("postgres"),
      "alter database going reset default_transaction_read_only",
    );
    await execute(
      url,
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'going' and pid <> pg_backend_pid()",
    );
    await expect.poll(() => ledger.admit(admitted).then(() => "done", String)).toBe("done");
    await server.stop("crash");
    await failedRequest(ledger, caller, log);
    expectSaid(log.lines().slice(-1), {
      code: "ENOENT",
      message: /^PostgreSQL: connect ENOENT/,
      remedy:
        /^The database cannot be reached\. Check that its server runs, and that host and port/,
    });
    const settling = ledger.settle(settlementOf(admitted));
    await expect.poll(() => log.lines().some(({ event }) => event === "ledger retry")).toBe(true);
    await server.start();
    expect((await settling).applied).toBe(true);
    expect((await ledger.showAccount(caller.accountId)).heldNanos).toBe(0n);
    expect(await ledger.verify([])).toMatchObject({ ok: true });
  });
});
