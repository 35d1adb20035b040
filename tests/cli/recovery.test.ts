import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { scriptOf } from "../documents/script-of.ts";
import { startLoad } from "../ledger/ledger-load.ts";
import { orderOf } from "../ledger/orders.ts";
import { auditProblems, defaultSettings, temporaryLedger } from "../ledger/support.ts";
import { openRecordingShell, type CommandResult } from "./recording-shell.ts";

const rules = { ...defaultSettings, requestsPerMinute: 1_000_000, leaseMs: 600_000 };

/** Runs the lines of docs/recovery.md behind a mark, as commands in a folder. */
async function follow(
  mark: string,
  run: ReturnType<typeof openRecordingShell>,
  ...more: readonly string[]
): Promise<readonly CommandResult[]> {
  const results: CommandResult[] = [];
  for (const line of scriptOf("docs/recovery.md", mark)) {
    const [program, ...words] = line.split(" ");
    expect(program).toBe("tributary");
    results.push(await run(...words, ...more));
  }
  return results;
}

const shellOf = (folder: string, path: string): ReturnType<typeof openRecordingShell> =>
  openRecordingShell(folder, { TRIBUTARY_DATABASE_URL: `sqlite:${path}` });

describe("docs/recovery.md on SQLite", () => {
  test("a backup taken under load is restored elsewhere, continues the heads, and says what came after it", async () => {
    using old = temporaryLedger();
    const here = shellOf(old.folder, old.path);
    let secret = "";
    let later = "";
    {
      await using ledger = await openSqliteLedger({ ...rules, path: old.path }, { now: Date.now });
      const load = await startLoad(ledger);
      secret = load.secret;
      await load.more(30);
      for (const { exitCode, stderr } of await follow("backup", here, "--json"))
        expect([exitCode, stderr]).toEqual([0, ""]);
      await load.more(30);
      await load.stop();
      later = (await ledger.verify([], true)).heads.join("\n");
    }
    // Another machine: nothing but the two files came with it.
    using fresh = temporaryLedger();
    for (const name of ["backup.sqlite", "heads.txt"])
      copyFileSync(join(old.folder, name), join(fresh.folder, name));
    const there = shellOf(fresh.folder, fresh.path);
    const [restored] = await follow("restore", there, "--json");
    expect(restored).toMatchObject({ exitCode: 0, stderr: "" });
    expect(JSON.parse(restored?.stdout ?? "")).toMatchObject({
      ok: true,
      path: fresh.path,
      accounts: 4,
      problems: [],
      replaced: null,
      after: [],
    });
    writeFileSync(join(fresh.folder, "later.txt"), later);
    const lost = await there("verify", "--against", "@later.txt", "--json");
    expect(lost.exitCode).toBe(1);
    const { problems } = JSON.parse(lost.stdout) as {
      readonly problems: readonly { readonly account: string; readonly message: string }[];
    };
    expect(new Set(problems.map(({ account }) => account)).size).toBe(4);

    // The old one is still there: what it has beyond the backup is counted, and it is kept.
    const [replacing] = await follow("restore", here, "--json");
    const said = JSON.parse(replacing?.stdout ?? "") as {
      readonly replaced: string;
      readonly after: readonly { readonly account: string; readonly entries: number }[];
    };
    expect(said.after).toHaveLength(4);
    const counts = later.split("\n").map((head) => Number(head.split(":")[1]));
    await using again = await openSqliteLedger(
      { ...rules, path: old.path },
      { now: () => Date.now() + 600_001 },
    );
    const now = (await again.verify([], true)).heads.map((head) => Number(head.split(":")[1]));
    const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other);
    expect(sum(said.after.map(({ entries }) => entries))).toBe(sum(counts) - sum(now));
    expect(existsSync(said.replaced)).toBe(true);
    const kept = await openSqliteLedger({ ...rules, path: said.replaced }, { now: Date.now });
    expect((await kept.verify(later.split("\n"))).ok).toBe(true);
    await kept[Symbol.asyncDispose]();

    // It goes on: what ran at that moment is given back.
    expect(await again.expire()).toBeGreaterThanOrEqual(4);
    await again.admit(orderOf(await again.authorize(secret, true)));
    expect(auditProblems(old.path)).toEqual([]);
    expect(readdirSync(old.folder).filter((name) => name.startsWith(".restore"))).toEqual([]);
  });

  test("a restore that is refused replaces nothing", async () => {
    using file = temporaryLedger();
    const run = shellOf(file.folder, file.path);
    await run("account", "create", "one", "--credit", "10");
    await run("ledger", "backup", "backup.sqlite");
    await run("account", "create", "two", "--credit", "10");
    expect((await run("verify", "--save-heads", "heads.txt")).exitCode).toBe(0);
    const before = readFileSync(file.path);
    const refuses = async (words: readonly string[], says: RegExp): Promise<void> => {
      const { exitCode, stderr, stdout } = await run("ledger", "restore", ...words);
      expect(exitCode).toBe(1);
      expect(stdout + stderr).toMatch(says);
      expect(readFileSync(file.path).equals(before)).toBe(true);
      expect(readdirSync(file.folder).filter((name) => /restore|replaced/.test(name))).toEqual([]);
    };
    // It lacks what the heads prove.
    await refuses(
      ["backup.sqlite", "--against", "@heads.txt"],
      /does not exist.*[^]*Nothing was replaced/,
    );
    await refuses(["nothing.sqlite"], /There is no backup at/);
    await refuses([file.path], /is the ledger itself/);
    {
      await using serving = await openSqliteLedger(
        { ...rules, path: file.path },
        { now: Date.now, serves: true },
      );
      await serving.check();
      const { exitCode, stderr } = await run("ledger", "restore", "backup.sqlite");
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringMatching(/1 service has this ledger open/),
      ]);
    }
    copyFileSync(join(file.folder, "backup.sqlite"), join(file.folder, "torn.sqlite"));
    truncateSync(join(file.folder, "torn.sqlite"), 20_000);
    const torn = await run("ledger", "restore", "torn.sqlite");
    expect(torn.exitCode).toBe(1);
    expect((await run("verify", "--against", "@heads.txt")).exitCode).toBe(0);
  });
});
