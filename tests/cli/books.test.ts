import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, openTill } from "../ledger/support.ts";
import { makeLedger } from "../ledger/made-ledger.ts";
import { openRecordingShell } from "./recording-shell.ts";

let folder = "";
let run = openRecordingShell("");
const day = 86_400_000;
const at = (text: string): number => Date.parse(text);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-books-"));
  mkdirSync(join(folder, "data"));
  run = openRecordingShell(folder, { TRIBUTARY_SQLITE_SYNCHRONOUS: "normal" });
  makeLedger(join(folder, "data/ledger.sqlite"));
  using store = openStore({ ...defaultSettings, path: join(folder, "data/ledger.sqlite") });
  const ann = openTill(store, "ann", 10_000_000_000n);
  const bob = openTill(store, "bob", 10_000_000_000n);
  ann.admit("req_a1", {}, at("2026-03-01T10:59:59Z"));
  ann.settle("req_a1", [100, 20], at("2026-03-01T11:00:00Z"));
  ann.admit("req_a2", {}, at("2026-03-01T11:10:00Z"));
  ann.settle("req_a2", [7, 1], at("2026-03-01T11:59:59.999Z"));
  ann.admit("req_a3", {}, at("2026-03-02T00:00:00Z"));
  ann.settle("req_a3", null, at("2026-03-02T00:00:01Z"));
  ann.admit("req_a4", {}, at("2026-03-02T01:00:00Z"));
  bob.admit("req_b1", {}, at("2026-03-02T00:00:00Z"));
  bob.settle("req_b1", [10, 10], at("2026-03-02T00:00:02Z"));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function json(...argv: readonly string[]): Promise<unknown> {
  const result = await run(...argv, "--json");
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  return JSON.parse(result.stdout);
}

function damage(sql: string): void {
  using database = new DatabaseSync(join(folder, "data/ledger.sqlite"));
  database.exec(`drop trigger entry_is_never_changed; drop trigger entry_is_never_removed; ${sql}`);
}

describe("usage", () => {
  const row = (account: string, group: object, numbers: readonly number[], charged: string) => ({
    account,
    ...group,
    requests: numbers[0],
    input_tokens: numbers[1],
    cached_input_tokens: 0,
    output_tokens: numbers[2],
    reasoning_tokens: 0,
    charged,
  });

  it("adds up what has ended, by day, for each account", async () => {
    expect(await json("usage")).toMatchObject([
      row("acct_ann", { day: "2026-03-01" }, [2, 107, 21], "0.000191"),
      row("acct_ann", { day: "2026-03-02" }, [1, 0, 0], "0"),
      row("acct_bob", { day: "2026-03-02" }, [1, 10, 10], "0.00005"),
    ]);
  });

  it("by hour, key or format, of one account", async () => {
    expect(await json("usage", "--account", "acct_ann", "--by", "hour")).toMatchObject([
      row("acct_ann", { hour: "2026-03-01T11:00:00Z" }, [2, 107, 21], "0.000191"),
      row("acct_ann", { hour: "2026-03-02T00:00:00Z" }, [1, 0, 0], "0"),
    ]);
    expect(await json("usage", "--account", "acct_bob", "--by", "key")).toMatchObject([
      row("acct_bob", { key: "key_bob" }, [1, 10, 10], "0.00005"),
    ]);
    expect(await json("usage", "--by", "format")).toMatchObject([
      { account: "acct_ann", format: "messages", requests: 3 },
      { account: "acct_bob", format: "messages", requests: 1 },
    ]);
  });

  it("from a time on and before another", async () => {
    const requests = async (...options: readonly string[]): Promise<number> => {
      const rows = (await json("usage", ...options)) as readonly { readonly requests: number }[];
      return rows.reduce((sum, one) => sum + one.requests, 0);
    };
    expect(
      await requests("--since", "2026-03-01T12:00:00.001+01:00", "--until", "2026-03-02"),
    ).toBe(1);
    const days = Math.ceil((Date.now() - at("2026-03-01")) / day);
    expect(await requests("--since", `${String(days)}d`)).toBe(4);
    expect((await run("usage", "--until", `${String(days)}d`)).stdout).toBe(
      "No request has ended in this time.\n",
    );
  });

  it("is a table with a total, csv, or a JSON object a line", async () => {
    const table = (await run("usage")).stdout.trimEnd().split("\n");
    expect(table.map((line) => line.split(/ {2,}/)).at(0)).toEqual([
      "ACCOUNT",
      "DAY",
      "REQUESTS",
      "INPUT TOKENS",
      "CACHED INPUT TOKENS",
      "OUTPUT TOKENS",
      "REASONING TOKENS",
      "CHARGED",
    ]);
    expect(table.at(-1)?.split(/ +/)).toEqual(["total", "4", "117", "0", "31", "0", "0.000241"]);
    expect((await run("usage", "--format", "csv", "--account", "acct_bob")).stdout).toBe(
      "account,day,requests,input_tokens,cached_input_tokens,output_tokens,reasoning_tokens,charged,account_name," +
        "begins_at,ends_at,completed,cancelled,cancelled_before_output,refused,failed,cancelled_by_operator,lease_lost,first_output_p50_ms," +
        "first_output_p95_ms,first_output_p99_ms,total_p50_ms,total_p95_ms,total_p99_ms\r\n" +
        "acct_bob,2026-03-02,1,10,0,10,0,0.00005,bob,2026-03-02T00:00:00.000Z,2026-03-03T00:00:00.000Z,1,0,0,0,0,0,0,,,,8,15,16\r\n",
    );
    const lines = (await run("usage", "--format", "jsonl")).stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(await json("usage"));
  });

  it.each([
    [["--by", "year"], "hour, day, month, account, key, format, label"],
    [["--by", "hour,day"], "one at most is a time"],
    [["--timezone", "Berlin"], "Europe/Berlin"],
    [["--format", "xml"], "table, csv, jsonl"],
    [["--since", "yesterday"], "2026-01-31"],
    [["--since", "2026-02-40"], "2026-01-31"],
    [["--since", "2026-03-02", "--until", "2026-03-01"], "before"],
  ])("is misused with %j", async (options, words) => {
    const result = await run("usage", ...options);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(words);
  });

  it("tells an unknown account from an idle one", async () => {
    const result = await run("usage", "--account", "acct_nobody", "--json");
    expect(result.exitCode).toBe(1);
    expect(JSON.parse(result.stderr)).toMatchObject({ error: { code: "not_found" } });
  });
});

describe("receipt", () => {
  it("tells what a request reserved, was charged, used, how it ended and when", async () => {
    expect(await json("receipt", "req_a1")).toEqual({
      id: "req_a1",
      account: "acct_ann",
      key: "key_ann",
      format: "messages",
      streamed: true,
      label: null,
      state: "settled",
      outcome: "completed",
      input_bound: 1_000,
      output_allowance: 100,
      price_list: "default",
      prices: { input: "1", cached_input: "1", output: "4" },
      reserved: "0.0014",
      refunded: "0",
      charged: "0.00018",
      lines: [
        { item: "input", tokens: 100, price: "1", amount: "0.0001" },
        { item: "cached_input", tokens: 0, price: "1", amount: "0" },
        { item: "output", tokens: 20, price: "4", amount: "0.00008" },
      ],
      usage: { input_tokens: 100, cached_input_tokens: 0, output_tokens: 20, reasoning_tokens: 0 },
      admitted_at: "2026-03-01T10:59:59.000Z",
      resolved_at: "2026-03-01T11:00:00.000Z",
      first_output_ms: null,
      total_ms: 5,
      head: expect.stringMatching(/^acct_ann:3:[0-9a-f]{64}$/) as string,
    });
    expect(await json("receipt", "req_a4")).toMatchObject({ state: "open", charged: null });
  });

  it("is one line a value for human eyes", async () => {
    const { stdout } = await run("receipt", "req_a3");
    expect(stdout).toMatch(/^outcome +failed$/m);
    expect(stdout).toMatch(/^prices input +1$/m);
    expect(stdout).toMatch(/^usage +-$/m);
    expect(stdout).toMatch(/^total ms +5$/m);
    expect(stdout).toMatch(/^lines +-$/m);
    expect((await run("receipt", "req_a1")).stdout).toMatch(/^input tokens +100$/m);
    const paid = (await run("receipt", "req_a1")).stdout;
    expect(paid).toMatch(/^lines input +100 x 1 per million = 0\.0001$/m);
    expect(paid).toMatch(/^lines output +20 x 4 per million = 0\.00008$/m);
  });

  it("says which requests have one", async () => {
    const result = await run("receipt", "req_none");
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toContain("no request req_none");
  });
});

describe("verify", () => {
  it("finds nothing in a sound ledger", async () => {
    expect(await json("verify")).toEqual({
      ok: true,
      entries: 11,
      accounts: 2,
      problems: [],
      problems_total: 0,
    });
    expect((await run("verify")).stdout).toBe("ok: 11 entries of 2 accounts, all of it adds up.\n");
  });

  it("names the first bad entry, with exit code 1", async () => {
    damage("update entry set note = 'x' where account_id = 'acct_ann' and sequence = 4");
    const result = await run("verify", "--json");
    expect(result).toMatchObject({ exitCode: 1, stderr: "" });
    expect(JSON.parse(result.stdout)).toEqual({
      ok: false,
      entries: 11,
      accounts: 2,
      problems: [
        {
          code: "entry-changed",
          account: "acct_ann",
          sequence: 4,
          request: "req_a2",
          message: expect.any(String) as string,
        },
      ],
      problems_total: 1,
    });
    const text = await run("verify");
    expect(text.exitCode).toBe(1);
    expect(text.stdout).toMatch(/^acct_ann entry 4 \(req_a2\): .*\[entry-changed\]\n11 entries/);
  });

  it("proves heads of receipts, and heads that were saved", async () => {
    const { head } = (await json("receipt", "req_a2")) as { readonly head: string };
    expect((await run("verify", "--against", head)).stdout).toContain(
      "it continues the heads given",
    );
    await run("verify", "--save-heads", "heads.txt");
    const saved = readFileSync(join(folder, "heads.txt"), "utf8").trimEnd().split("\n");
    expect(saved.map((line) => line.slice(0, 11))).toEqual(["acct_ann:8:", "acct_bob:3:"]);
    await run("account", "credit", "acct_ann", "1");
    expect(await json("verify", "--against", "@heads.txt")).toMatchObject({ ok: true });
    const forged = head.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    const result = await run("verify", "--against", `${saved[0] ?? ""},${forged}`, "--json");
    expect(result.exitCode).toBe(1);
    expect(JSON.parse(result.stdout)).toMatchObject({
      problems: [{ account: "acct_ann", sequence: 5, code: "head-differs" }],
    });
  });

  it.each([
    ["acct_ann:5", "no head"],
    ["", "names no head"],
    ["@missing.txt", "missing.txt"],
  ])("is misused against %j", async (head, words) => {
    const result = await run("verify", "--against", head);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(words);
  });

  it("does not save the heads of a damaged ledger", async () => {
    damage("update account set balance_nanos = balance_nanos + 1 where id = 'acct_bob'");
    writeFileSync(join(folder, "heads.txt"), "before\n");
    expect((await run("verify", "--save-heads", "heads.txt")).exitCode).toBe(1);
    expect(readFileSync(join(folder, "heads.txt"), "utf8")).toBe("before\n");
  });
});

describe("seal", () => {
  it("rotates, and lists without secrets", async () => {
    await json("seal", "list");
    const { id } = (await json("seal", "rotate")) as { readonly id: string };
    const listed = await json("seal", "list");
    expect(listed).toMatchObject([{}, { id, age_seconds: expect.any(Number) as unknown }]);
    const { stdout } = await run("seal", "rotate");
    expect(stdout).toMatch(
      /^Made key [0-9a-f]{12}\. Services that run .* older keys go on opening\.\n$/,
    );
    expect((await run("seal", "list")).stdout).toMatch(/^ID +AGE\n[0-9a-f]{12} +\d+ s\n/);
  });
});

describe("checkpoint", () => {
  it("rolls up what is old, and everything still adds up", async () => {
    const before = await json("usage");
    expect(await json("checkpoint", "--before", "2026-03-02")).toEqual({
      accounts: 1,
      removed: 5,
      misdated: 0,
    });
    // Bob's first entry is old as well, but one entry is not worth a checkpoint.
    expect(await json("verify")).toMatchObject({ ok: true, entries: 7 });
    expect(await json("usage")).toEqual(before);
    expect(await json("receipt", "req_a1")).toMatchObject({ charged: "0.00018" });
    const { stdout } = await run("checkpoint", "--before", "1d", "--account", "acct_bob");
    expect(stdout).toBe("Rolled up: 3 entries of 1 account.\n");
    expect(await json("verify")).toMatchObject({ ok: true, entries: 5 });
  });

  it("changes nothing in a damaged ledger", async () => {
    damage("update account set balance_nanos = balance_nanos + 1 where id = 'acct_bob'");
    const result = await run("checkpoint", "--before", "1d");
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toContain("1 problem,");
    expect(JSON.parse((await run("verify", "--json")).stdout)).toMatchObject({ entries: 11 });
  });

  it("wants to know before when", async () => {
    expect((await run("checkpoint")).exitCode).toBe(2);
  });
});
