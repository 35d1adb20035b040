import { execFile } from "node:child_process";
import { readFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRecordingShell } from "./recording-shell.ts";

const main = join(import.meta.dirname, "../../src/cli/tributary.cjs");
let folder = "";
let run = openRecordingShell("");

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-cli-"));
  run = openRecordingShell(folder, { TRIBUTARY_SQLITE_SYNCHRONOUS: "normal" });
});
afterAll(() => rmSync(folder, { recursive: true }));

async function json(...argv: readonly string[]): Promise<unknown> {
  const result = await run(...argv, "--json");
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  expect(result.stdout.trimEnd()).not.toContain("\n");
  return JSON.parse(result.stdout);
}

async function makeAccount(...options: readonly string[]): Promise<Record<string, string>> {
  return (await json("account", "create", "Ann", ...options)) as Record<string, string>;
}

describe("account", () => {
  it("makes an account, with credit when told", async () => {
    expect(await makeAccount("--credit", "9.999812")).toMatchObject({
      id: expect.stringMatching(/^acct_[0-9A-Za-z]+$/) as string,
      name: "Ann",
      balance: "9.999812",
      held: "0",
      available: "9.999812",
      status: "active",
      limits: { concurrent_requests: null, requests_per_minute: null, output_tokens_max: null },
      price_list: null,
    });
    expect((await makeAccount())["balance"]).toBe("0");
  });

  it("gives and takes credit, and never takes what is not there", async () => {
    const { id = "" } = await makeAccount("--credit", "1");
    expect(await json("account", "credit", id, "0.5", "--note", "paid")).toMatchObject({
      balance: "1.5",
    });
    expect(await json("account", "credit", id, "-1.25")).toMatchObject({ balance: "0.25" });
    expect(await json("account", "credit", id, "-.25".replace(".", "0."))).toMatchObject({
      balance: "0",
    });
    const refused = await run("account", "credit", id, "-1", "--json");
    expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: "not_possible" } });
    expect(await json("account", "show", id)).toMatchObject({ balance: "0" });
  });

  it("disables and enables, and lists what there is", async () => {
    const { id = "" } = await makeAccount();
    expect(await json("account", "disable", id)).toMatchObject({ id, status: "disabled" });
    expect(await json("account", "list")).toContainEqual(
      expect.objectContaining({ id, status: "disabled" }),
    );
    expect(await json("account", "enable", id)).toMatchObject({ id, status: "active" });
  });

  it("is a table for human eyes", async () => {
    const { id = "" } = await makeAccount("--credit", "3");
    const { stdout } = await run("account", "show", id);
    const [heads = "", cells = ""] = stdout.split("\n");
    expect(heads.split(/ +/)).toEqual(["ID", "NAME", "BALANCE", "HELD", "AVAILABLE", "STATUS"]);
    expect(cells.split(/ +/)).toEqual([id, "Ann", "3", "0", "3", "active"]);
    expect(heads.indexOf("BALANCE")).toBe(cells.indexOf(" 3 ") + 1);
  });
});

describe("key", () => {
  it("prints the secret once, in a form that a script can take", async () => {
    const { id = "" } = await makeAccount();
    const made = (await json("key", "create", id, "--name", "laptop")) as Record<string, string>;
    expect(made).toEqual({
      id: expect.stringMatching(/^key_[0-9A-Za-z]+$/) as string,
      account: id,
      name: "laptop",
      key: expect.stringMatching(/^trib_[0-9A-Za-z]+_[0-9A-Za-z]+_[0-9A-Za-z]{43}$/) as string,
    });
    const plain = await run("key", "create", id);
    expect(plain.stdout).toMatch(/^trib_[0-9A-Za-z_]+\n$/);

    const listed = await run("key", "list", id, "--json");
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { id: made["id"], account: id, name: "laptop", revoked: null },
      { name: "default" },
    ]);
    expect(listed.stdout).not.toContain(made["key"]?.slice(-43));
    expect((await run("key", "list", id)).stdout).not.toContain(made["key"]?.slice(-43));
  });

  it("is revoked by its id, and keeps the time", async () => {
    const { id = "" } = await makeAccount();
    const { id: keyId = "" } = (await json("key", "create", id)) as Record<string, string>;
    const revoked = await json("key", "revoke", keyId);
    expect(revoked).toMatchObject({
      id: keyId,
      revoked: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    });
    expect(await json("key", "list", id)).toEqual([revoked]);
  });

  it("is made with what it may do, paused, resumed and rotated", async () => {
    const { id = "" } = await makeAccount();
    const policy = ["--scopes", "read", "--expires", "90d", "--requests-per-minute", "5"];
    const made = (await json("key", "create", id, ...policy)) as Record<string, string>;
    const { id: keyId = "" } = made;
    const limits = { requests_per_minute: 5, output_tokens_max: null };
    const [listed] = (await json("key", "list", id)) as Record<string, string>[];
    expect(listed).toMatchObject({ scopes: ["read"], status: "active", limits, last_used: null });
    expect(Date.parse(listed?.["expires"] ?? "")).toBeGreaterThan(Date.now() + 89 * 86_400_000);
    expect(await json("key", "pause", keyId)).toMatchObject({ id: keyId, status: "paused" });
    expect(await json("key", "resume", keyId)).toMatchObject({ id: keyId, status: "active" });
    const rotated = (await json("key", "rotate", keyId, "--overlap", "24h")) as typeof made;
    expect({ ...rotated, key: "" }).toEqual({ ...made, key: "" });
    expect(rotated["key"]).not.toBe(made["key"]);
  });

  it.each([
    ["create", "acct_x", "--scopes", "write"],
    ["create", "acct_x", "--expires", "2020-01-01"],
    ["create", "acct_x", "--requests-per-minute", "0"],
    ["create", "acct_x", "--output-tokens-max", "65537"],
    ["rotate", "key_x", "--overlap", "31d"],
    ["rotate", "key_x", "--overlap", "2099-01-01"],
  ])("is refused as misuse: key %s %s %s %s", async (...words) => {
    const { exitCode, stderr } = await run("key", ...words);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(words[2]);
  });
});

describe("a command", () => {
  const groups = [[], ["serve"], ["account"], ["account", "credit"], ["key"], ["key", "create"]];
  const books = [["usage"], ["receipt"], ["verify"], ["checkpoint"]];
  it.each([...groups, ...books, ["model"], ["model", "pull"], ["doctor"]])(
    "has help: %s %s",
    async (...words) => {
      for (const flag of ["--help", "-h"]) {
        const result = await run(...words, flag);
        expect(result).toMatchObject({ exitCode: 0, stderr: "" });
        expect(result.stdout).toContain(`Usage: ${["tributary", ...words].join(" ")} [`);
      }
    },
  );

  it.each([
    [["frobnicate"], "unknown command 'frobnicate'"],
    [["toString"], "unknown command 'toString'"],
    [["acount", "list"], "Did you mean account?"],
    [["account"], "create NAME"],
    [["account", "constructor"], "See: tributary account --help"],
    [["account", "crate", "x"], "unknown command 'crate'\n(Did you mean create?)"],
    [["account", "create"], "missing required argument 'NAME'"],
    [["account", "credit", "acct_x"], "missing required argument 'AMOUNT'"],
    [["account", "credit", "acct_x", "ten"], "no amount of credits"],
    [["account", "credit", "acct_x", "0.0000000001"], "no amount of credits"],
    [["account", "credit", "acct_x", "0"], "must not be 0"],
    [["account", "create", "x", "--credit", "-1"], "must not be negative"],
    [["account", "create", "x", "--credit"], "'--credit <C>' argument missing"],
    [["account", "create", "x", "--credti", "5"], "Did you mean --credit?"],
    [["serve", "--port", "9000"], "It is a setting: set TRIBUTARY_PORT in the environment"],
    [["serve", "--host=0.0.0.0"], "set TRIBUTARY_HOST"],
    [["doctor", "--data-dir", "x"], "set TRIBUTARY_DATA_DIR"],
    [
      ["checkpoint"],
      "required option '--before <T>' not specified\nSee: tributary checkpoint --help",
    ],
    [
      ["account", "list", "surplus"],
      "too many arguments for 'list'. Expected 0 arguments but got 1",
    ],
    [["account", "list", "--credit", "1"], "--credit"],
    [["account", "create", ""], "`name` has 1 to 100 characters"],
    [["key", "list", "acct_x", "--secret"], "--secret"],
    [["ledger", "move"], "required option '--to <URL>' not specified"],
    [["ledger", "move", "--to", "file"], "ledger move needs --to postgres://"],
    [["ledger", "move", "--to", "postgres://me:a@SECRET@db/l"], "--to: write it as postgres://"],
    [["doctor", "--key", "k"], "--key belongs to --url"],
    [["doctor", "--url", "x", "--key", "k"], "no address"],
    [["doctor", "--timeout", "soon"], "whole number of seconds"],
  ])("that is misused ends with 2 and says why: %j", async (words, reason) => {
    const plain = await run(...words);
    expect(plain).toMatchObject({ exitCode: 2, stdout: "" });
    expect(plain.stderr).toContain(reason);
    expect(plain.stderr).not.toMatch(/^\s+at /m);
    const asJson = await run(...words, "--json");
    expect(asJson).toMatchObject({ exitCode: 2, stdout: "" });
    const { error } = JSON.parse(asJson.stderr) as { error: { code: string; message: string } };
    expect(error.message).toContain(reason);
    expect(["misused", "invalid_value"]).toContain(error.code);
  });

  it("has the same help behind the word help", async () => {
    for (const words of [["account"], ["key", "create"], ["doctor"]])
      expect(await run("help", ...words)).toEqual(await run(...words, "--help"));
    expect(await run("help", "frobnicate")).toEqual(await run("--help"));
  });

  it("names other commands as they are called here", async () => {
    const other = join(folder, "other");
    const clone = openRecordingShell(other, {}, "npm run -s tributary --");
    await clone("account", "create", "ann");
    const { stderr } = await clone("account", "show", "acct_none");
    expect(stderr).toContain("`npm run -s tributary -- account list` shows");
    expect((await clone("account", "--help")).stdout).toContain(
      "Usage: npm run -s tributary -- account [",
    );
    expect((await clone("account", "list")).stderr).toContain(join(other, "data/ledger.sqlite"));
  });

  it.each([
    [["account", "show", "acct_none"]],
    [["key", "create", "acct_none"]],
    [["key", "list", "acct_none"]],
    [["key", "revoke", "key_none"]],
  ])("that finds nothing ends with 1: %j", async (words) => {
    const result = await run(...words, "--json");
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(JSON.parse(result.stderr)).toMatchObject({
      error: { code: "not_found", message: expect.stringContaining("_none") as string },
    });
  });

  it("with bad settings ends with 2 and one line a problem", async () => {
    const bad = openRecordingShell(folder, { TRIBUTARY_PORT: "x", TRIBUTARY_LOG_LEVEL: "y" });
    for (const command of [["account", "list"], ["serve"]]) {
      const result = await bad(...command);
      expect(result).toMatchObject({ exitCode: 2, stdout: "" });
      expect(result.stderr.trimEnd().split("\n")).toEqual([
        expect.stringMatching(/^TRIBUTARY_PORT="x": allowed is /),
        expect.stringMatching(/^TRIBUTARY_LOG_LEVEL="y": allowed is /),
      ]);
    }
    const asJson = await bad("account", "list", "--json");
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: "settings" } });
  });

  it("warns of a setting that nothing reads, beside its answer", async () => {
    const warned = openRecordingShell(folder, { TRIBUTARY_XYZ: "1" });
    const result = await warned("account", "list", "--json");
    expect(result.exitCode).toBe(0);
    expect(result.stderr).toBe(
      "warning: TRIBUTARY_XYZ is no setting of Tributary and has no effect; see docs/configuration.md\n",
    );
    expect(JSON.parse(result.stdout)).toBeInstanceOf(Array);
  });

  it("with a ledger that cannot be opened ends with 1 and one clear line", async () => {
    writeFileSync(join(folder, "not-a-ledger"), "x".repeat(8192));
    const broken = openRecordingShell(folder, { TRIBUTARY_DATABASE_URL: "sqlite:not-a-ledger" });
    const result = await broken("account", "list");
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toContain("not-a-ledger");
    expect(result.stderr).not.toMatch(/^\s+at /m);
  });
});

describe("the program", () => {
  const execute = promisify(execFile);

  it("runs as a process, with the settings of .env, and ends with its exit code", async () => {
    const home = mkdtempSync(join(folder, "home-"));
    writeFileSync(join(home, ".env"), "TRIBUTARY_DATABASE_URL=sqlite:books/ledger.db\n");
    const options = { cwd: home, timeout: 100_000 };
    const made = await execute(
      process.execPath,
      [main, "account", "create", "Ann", "--json"],
      options,
    );
    expect(JSON.parse(made.stdout)).toMatchObject({ name: "Ann" });
    expect(readFileSync(join(home, "books/ledger.db")).subarray(0, 15).toString()).toBe(
      "SQLite format 3",
    );
    await expect(execute(process.execPath, [main, "account"], options)).rejects.toMatchObject({
      code: 2,
      stdout: "",
    });
  });

  it("tells its version", async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
    ) as { version: string };
    expect(await run("--version")).toMatchObject({ stdout: `${version}\n`, exitCode: 0 });
  });
});
