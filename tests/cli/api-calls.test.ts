import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startOperators, type TestOperators } from "../operators/start-operators.ts";
import { openRecordingShell } from "./recording-shell.ts";

// Commands that are calls of the operators' API do the same on the ledger here and, with --url, where a service runs.

let folder = "";
let operators: TestOperators;
let shell = openRecordingShell("");

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tributary-api-calls-"));
  operators = await startOperators();
  shell = openRecordingShell(folder, {
    TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
    TRIBUTARY_OPERATOR_TOKEN: operators.token,
  });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await operators[Symbol.asyncDispose]();
});

type Json = Readonly<Record<string, unknown>>;

describe.each(["here", "with --url"])("%s", (where) => {
  const run = (...words: readonly string[]) =>
    shell(...words, ...(where === "here" ? [] : ["--url", operators.url]));

  async function json<Value = Json>(...words: readonly string[]): Promise<Value> {
    const result = await run(...words, "--json");
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    return JSON.parse(result.stdout) as Value;
  }

  async function actions(target: string): Promise<readonly unknown[]> {
    const rows = await json<readonly Json[]>("audit", "--target", target);
    return rows.map(({ action }) => action).toReversed();
  }

  const newAccount = async (): Promise<string> =>
    String((await json("account", "create", "Ann", "--credit", "5"))["id"]);

  it("an account is changed, option by option, and `none` takes away", async () => {
    const id = await newAccount();
    const changed = await json(
      ...["account", "change", id, "--name", "Anna", "--external-id", "crm-7"],
      ...["--metadata", "team=search,cost=12", "--concurrent-requests", "2"],
      ...["--requests-per-minute", "30", "--output-tokens-max", "900", "--low-balance-at", "1.5"],
      ...["--grant", "2", "--every", "month", "--timezone", "Europe/Berlin", "--carry-over", "yes"],
    );
    expect(changed).toMatchObject({
      id,
      name: "Anna",
      external_id: "crm-7",
      metadata: { team: "search", cost: "12" },
      limits: { concurrent_requests: 2, requests_per_minute: 30, output_tokens_max: 900 },
      low_balance_at: "1.5",
      grant: { amount: "2", every: "month", timezone: "Europe/Berlin", carry_over: true },
      balance: "7",
      version: 2,
    });
    const none = ["--external-id", "--concurrent-requests", "--low-balance-at", "--grant"];
    const words = none.flatMap((option) => [option, "none"]);
    const taken = await json("account", "change", id, ...words, "--metadata", "cost=");
    expect(taken).toMatchObject({
      name: "Anna",
      external_id: null,
      metadata: { team: "search" },
      limits: { concurrent_requests: null, requests_per_minute: 30 },
      low_balance_at: null,
      grant: null,
      balance: "7",
    });
    expect(taken["metadata"]).toEqual({ team: "search" });
    expect(await actions(id)).toEqual(["account.create", "account.change", "account.change"]);
  });

  it("a key is changed and gets a budget", async () => {
    const made = await json("key", "create", await newAccount(), "--name", "web");
    const id = String(made["id"]);
    const changed = await json(
      ...["key", "change", id, "--name", "app", "--scopes", "read", "--expires", "90d"],
      ...["--requests-per-minute", "10", "--budget", "3.5", "--period", "week"],
    );
    expect(changed).toMatchObject({
      id,
      name: "app",
      scopes: ["read"],
      limits: { requests_per_minute: 10, output_tokens_max: null },
      budget: { amount: "3.5", period: "week", timezone: "UTC" },
      budget_left: "3.5",
    });
    expect(await json("key", "change", id, "--budget", "none", "--expires", "none")).toMatchObject({
      budget: null,
      expires_at: null,
      name: "app",
    });
    const rotated = await json("key", "rotate", id, "--overlap", "24h");
    expect(rotated).toMatchObject({ id, name: "app" });
    expect(rotated["key"]).toMatch(/^trib_/);
    expect(rotated["key"]).not.toBe(made["key"]);
    expect(await actions(id)).toEqual(["key.create", "key.change", "key.change", "key.rotate"]);
  });

  it("webhooks are made, changed, tried, sent again and taken away", async () => {
    const made = await run(
      "webhook",
      "create",
      "https://shop.example/hook",
      "--types",
      "key.expiring",
    );
    expect(made.exitCode).toBe(0);
    expect(made.stdout).toMatch(/^whsec_\S+\n$/);
    const all = await json<readonly Json[]>("webhook", "list");
    const webhook = all.at(-1) ?? {};
    const id = String(webhook["id"]);
    expect(webhook).toMatchObject({
      types: ["key.expiring"],
      status: "active",
      failing_since: null,
    });
    const options = ["--address", "https://shop.example/other", "--types", "all"];
    expect(await json("webhook", "change", id, ...options, "--description", "shop")).toMatchObject({
      url: "https://shop.example/other",
      types: null,
      description: "shop",
      version: 2,
    });
    const rotated = await json("webhook", "rotate", id, "--overlap", "1h");
    expect(rotated["secret"]).toMatch(/^whsec_/);
    expect(rotated["old_secret_until"]).toMatch(/Z$/);
    const test = await json<{ readonly event: Json }>("webhook", "test", id);
    expect(test).toMatchObject({ state: "pending", event: { type: "webhook.test" } });
    const event = String(test.event["id"]);
    expect(await json("webhook", "deliveries", id, "--state", "pending")).toMatchObject([
      { event: { id: event } },
    ]);
    const table = await run("webhook", "deliveries", id);
    expect(table.stdout).toMatch(/^EVENT +TYPE +STATE +TRIES/);
    expect(table.stdout).toContain(`${event}  webhook.test  pending`);
    expect(await json("webhook", "resend", id, event)).toMatchObject({
      state: "pending",
      tries: 0,
    });
    expect(await json("webhook", "change", id, "--status", "paused")).toMatchObject({
      status: "paused",
    });
    expect(await json("webhook", "delete", id)).toMatchObject({ id });
    expect((await json<readonly Json[]>("webhook", "list")).map((one) => one["id"])).not.toContain(
      id,
    );
  });

  it("a statement is a table, a page, or JSON", async () => {
    const id = await newAccount();
    const month = new Date().toISOString().slice(0, 7);
    const csv = await run("account", "statement", id, month);
    expect(csv.stdout).toMatch(/^what,at,amount,/);
    const page = await run("account", "statement", id, month, "--form", "html");
    expect(page.stdout).toContain(`<h1>Statement of ${month}</h1>`);
    expect(await json("account", "statement", id, month)).toMatchObject({
      account: id,
      top_ups: "5",
    });
  });

  it("what is wrong is said, and nothing is done", async () => {
    const id = await newAccount();
    for (const [words, says] of [
      [["account", "change", id, "--requests-per-minute", "many"], "--requests-per-minute"],
      [["account", "change", id, "--metadata", "team"], "NAME=VALUE"],
      [["account", "change", id, "--grant", "2", "--every", "year"], "`grant.every`"],
      [["account", "change", "acct_none", "--name", "x"], "acct_none"],
      [["account", "statement", id, "2026-13"], "no month"],
      [["webhook", "create", "https://127.0.0.1/x"], "`url`"],
      [["webhook", "create", "https://shop.example/", "--types", "nothing"], "`types.0`"],
      [["webhook", "resend", "hook_none", "evt_none"], "hook_none"],
    ] as const) {
      const result = await run(...words);
      expect([words, result.exitCode > 0, result.stdout]).toEqual([words, true, ""]);
      expect(result.stderr).toContain(says);
    }
    expect(await actions(id)).toEqual(["account.create"]);
  });

  it("operators are made, listed and revoked", async () => {
    const { id, token } = await json("operator", "create", "Olga", "--role", "viewer");
    expect(token).toMatch(/^trop_/);
    const secret = await run("operator", "create", "Bert", "--role", "billing");
    expect(secret.stdout).toMatch(/^trop_\S+\n$/);
    const listed = await json<readonly Json[]>("operator", "list");
    expect(listed).toContainEqual(expect.objectContaining({ id, name: "Olga", revoked: null }));
    expect((await run("operator", "list")).stdout).toMatch(/^ID +NAME +ROLE +CREATED +REVOKED\n/);
    const revoked = await run("operator", "revoke", String(id));
    expect(revoked.stdout).toMatch(/ +Olga +viewer +\S+Z +\S+Z\n$/);
    expect(await actions(String(id))).toEqual(["operator.create", "operator.revoke"]);
  });

  it("accounts are listed, and the one that is made tells what comes next", async () => {
    const made = await run("account", "create", "Bert", "--credit", "3");
    const [, id = ""] = /^ID +NAME .*\n(acct_\S+) +Bert +3 +0 +3 +active\n/.exec(made.stdout) ?? [];
    expect(made.stdout).toContain(`Make a key for it: tributary key create ${id}\n`);
    expect((await run("account", "list")).stdout).toContain(`${id}  Bert`);
  });

  it("usage has the columns, the total and the forms of the command", async () => {
    const rows = await json<readonly Json[]>("usage", "--by", "key");
    expect(rows).toEqual([]);
    expect((await run("usage")).stdout).toBe("No request has ended in this time.\n");
    expect((await run("usage", "--by", "year")).exitCode).toBeGreaterThan(0);
  });

  it("the ledger is verified", async () => {
    expect(await json("verify")).toMatchObject({ ok: true, problems: [], problems_total: 0 });
    expect((await run("verify")).stdout).toMatch(/^ok: .* all of it adds up\.\n$/);
  });
});

it("usage of afar is what its service answers, one account after another, with a total", async () => {
  const { serveRequests } = await import("../operators/start-operators.ts");
  const accounts = [
    await serveRequests(operators.ledger, 2),
    await serveRequests(operators.ledger, 1),
  ];
  const table = await shell("usage", "--by", "format", "--url", operators.url);
  const lines = table.stdout.trimEnd().split("\n");
  const shown = lines.slice(1, -1).map((line) => line.split(/ +/)[0]);
  expect(shown).toEqual(accounts.toSorted());
  expect(lines[0]).toMatch(/^ACCOUNT +FORMAT +REQUESTS .* CHARGED$/);
  expect(lines.at(-1)).toMatch(/^total +3 /);
  const csv = await shell("usage", "--by", "format", "--format", "csv", "--url", operators.url);
  expect(csv.stdout).toMatch(/^account,format,requests,.*\r\nacct_/);
});

it("usage of afar has the rows of every page, each asked for with the same words", async () => {
  const asked: string[] = [];
  const row = (name: string) => ({ account: name, day: "2026-01-31", requests: 1, charged: "0" });
  const pages = createServer((request, response) => {
    asked.push(request.url ?? "");
    const isFirst = asked.length === 1;
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        data: [row(isFirst ? "acct_b" : "acct_a")],
        next_cursor: isFirst ? "more" : null,
      }),
    );
  });
  await once(pages.listen(0, "127.0.0.1"), "listening");
  try {
    const url = `http://127.0.0.1:${String((pages.address() as AddressInfo).port)}`;
    const { stdout } = await shell("usage", "--key", "key_x", "--url", url, "--json");
    expect(JSON.parse(stdout)).toEqual([row("acct_a"), row("acct_b")]);
  } finally {
    pages.close();
  }
  expect(asked[0]).toContain("/api/v1/usage?key=key_x&");
  expect(asked).toEqual([asked[0], `${asked[0] ?? ""}&cursor=more`]);
});

it("a ledger without accounts, operators or changes says what makes them", async () => {
  const empty = openRecordingShell(mkdtempSync(join(folder, "empty-")));
  expect(await empty("account", "list")).toMatchObject({ exitCode: 1, stdout: "" });
  expect(await empty("account", "create", "")).toMatchObject({ exitCode: 2, stdout: "" });
  expect((await empty("account", "list")).stdout).toBe(
    "There is no account. Make one: `tributary account create NAME --credit 10`\n",
  );
  expect((await empty("operator", "list")).stdout).toBe(
    "There is no operator. Make one: `tributary operator create NAME --role owner`\n",
  );
  expect((await empty("audit")).stdout).toBe(
    "Nothing was changed that these filters let through.\n",
  );
});

it("--against and --save-heads are of the ledger here", async () => {
  const result = await shell("verify", "--save-heads", "x", "--url", operators.url);
  expect(result).toMatchObject({ exitCode: 2, stdout: "" });
});
