import { execFile } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { scriptOf } from "../documents/script-of.ts";
import { startLoad } from "../ledger/ledger-load.ts";
import { defaultSettings } from "../ledger/support.ts";
import { execute, findPostgres, postgresTests, startPostgres } from "../ledger/postgres-server.ts";

const run = promisify(execFile);
const rules = { ...defaultSettings, requestsPerMinute: 1_000_000, leaseMs: 600_000 };

it.skipIf(!postgresTests)(
  "PostgreSQL goes back to a moment under load as docs/recovery.md says: all up to it is there, nothing behind it",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tributary-recovery-"));
    await using opened = new AsyncDisposableStack();
    opened.defer(() => rmSync(folder, { recursive: true, force: true }));
    // The server's user writes into it.
    chmodSync(folder, 0o777);
    const places = {
      ARCHIVE: join(folder, "archive"),
      BASE: join(folder, "base"),
      NEW: join(folder, "new"),
    };
    mkdirSync(places.ARCHIVE);
    const named = (line: string, more: Readonly<Record<string, string>> = {}): string =>
      line.replaceAll(/\$([A-Z]+)/g, (_all, name: string) => ({ ...places, ...more })[name] ?? "");
    const archive = scriptOf("docs/recovery.md", "archive").map((line) => {
      const [, name = "", value = ""] = /^(\w+) = '?(.*?)'?$/.exec(named(line)) ?? [];
      return [name, value] as const;
    });
    const server = opened.use(
      await startPostgres({
        more(_data, own) {
          own(places.ARCHIVE);
          return Object.fromEntries(archive);
        },
      }),
    );
    const url = await server.createDatabase("books");
    const shell = openRecordingShell(folder, { TRIBUTARY_DATABASE_URL: url });
    await using ledger = await openPostgresLedger({ ...rules, url }, {});
    const load = await startLoad(ledger);
    await load.more(30);
    const [base = ""] = scriptOf("docs/recovery.md", "base");
    const [program = "", ...words] = named(base).split(" ");
    const at = dirname(server.socket);
    await run(join(findPostgres(program) ?? "", program), [
      ...words,
      "--host",
      at,
      "--username=ledger",
    ]);
    await load.more(30);
    expect((await shell("verify", "--save-heads", "heads.txt")).exitCode).toBe(0);
    await load.more(10);
    const [now] = await execute(url, "select clock_timestamp()::text as moment");
    const moment = String(now?.["moment"]);
    await load.more(30);
    await load.stop();
    expect((await shell("verify", "--save-heads", "later.txt")).exitCode).toBe(0);
    const entries = (await ledger.verify([])).entries;
    await execute(url, "select pg_switch_wal()");
    // What is archived now is all that the other machine has.
    await expect
      .poll(() =>
        execute(
          url,
          "select last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1) as done from pg_stat_archiver",
        ),
      )
      .toEqual([{ done: true }]);
    await server.stop("crash");

    const script = join(folder, "recover.sh");
    writeFileSync(
      script,
      `set -eu\n${named(scriptOf("docs/recovery.md", "recover").join("\n"), { MOMENT: moment })}\n`,
    );
    await run("sh", [script]);
    // Where the server of the test has its own settings.
    appendFileSync(join(places.NEW, "postgresql.auto.conf"), "archive_mode = off\n");
    const restored = opened.use(await startPostgres({ from: places.NEW }));
    const elsewhere = openRecordingShell(folder, { TRIBUTARY_DATABASE_URL: restored.url("books") });
    await expect
      .poll(() => execute(restored.url("books"), "select pg_is_in_recovery() as recovering"))
      .toEqual([{ recovering: false }]);
    const [verify = ""] = scriptOf("docs/recovery.md", "verify");
    const verified = await elsewhere(...verify.split(" ").slice(1), "--json");
    expect(verified.exitCode, verified.stdout + verified.stderr).toBe(0);
    const back = JSON.parse(verified.stdout) as { readonly entries: number };
    expect(back.entries).toBeLessThan(entries);
    const lost = await elsewhere("verify", "--against", "@later.txt", "--json");
    expect(lost.exitCode).toBe(1);
    const { problems } = JSON.parse(lost.stdout) as {
      readonly problems: readonly { readonly account: string }[];
    };
    expect(new Set(problems.map(({ account }) => account)).size).toBe(4);
    await using again = await openPostgresLedger({ ...rules, url: restored.url("books") }, {});
    expect((await again.verify([])).ok).toBe(true);
    await again.authorize(load.secret, true);
  },
);
