import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startOperators, type TestOperators } from "../operators/start-operators.ts";
import { openRecordingShell } from "./recording-shell.ts";

let folder = "";
let run = openRecordingShell("");

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-operators-"));
  run = openRecordingShell(folder, { TRIBUTARY_SQLITE_SYNCHRONOUS: "normal" });
});
afterAll(() => rmSync(folder, { recursive: true }));

async function json<Value>(...argv: readonly string[]): Promise<Value> {
  const result = await run(...argv, "--json");
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  return JSON.parse(result.stdout) as Value;
}

it("makes, lists and revokes operators, and tells who did", async () => {
  const empty = await run("operator", "list");
  expect(empty.stderr).toContain("There is no ledger");
  const made = await json<{ id: string; token: string }>(
    ...["operator", "create", "Olga", "--role", "owner", "--expires", "90d"],
  );
  expect(made).toMatchObject({
    id: expect.stringMatching(/^oper_[0-9A-Za-z]{15}$/) as string,
    name: "Olga",
    role: "owner",
    created: expect.any(String) as string,
    revoked: null,
    token: expect.stringMatching(/^trop_/) as string,
    expires: expect.stringMatching(/Z$/) as string,
  });
  expect(made).not.toHaveProperty("secret");
  expect(await json("operator", "list")).toMatchObject([{ name: "Olga", revoked: null }]);
  const revoked = await json<{ revoked: string }>("operator", "revoke", made.id);
  expect(revoked.revoked).toMatch(/Z$/);
  const log = await json<readonly Record<string, unknown>[]>("audit", "--target", made.id);
  expect(log.map(({ action, actor, after }) => [action, actor, after])).toEqual([
    [
      "operator.revoke",
      `user:${userInfo().username}`,
      { name: "Olga", role: "owner", revoked: true },
    ],
    ["operator.create", `user:${userInfo().username}`, { name: "Olga", role: "owner" }],
  ]);
  expect(JSON.stringify(log)).not.toContain(made.token);
  const table = await run("audit", "--limit", "1");
  expect(table.stdout).toMatch(/^TIME +ACTOR +ACTION +TARGET +BEFORE +AFTER\n.* operator\.revoke /);
  expect(table.stdout).toMatch(/ name="Olga" role="owner" revoked=true\n$/);
  expect(table.stdout.trimEnd().split("\n")).toHaveLength(2);
  expect((await run("audit", "--since", "2030-01-01")).stdout).toContain("Nothing was changed");
});

it.each([
  [["operator", "create", "Ann"], "--role"],
  [["operator", "create", "Ann", "--role", "king"], "owner, billing, viewer"],
  [["operator", "create", "Ann", "--role", "viewer", "--expires", "2020-01-01"], "is over"],
  [["operator", "create", "", "--role", "viewer"], "1 to 100 characters"],
  [["audit", "--limit", "0"], "from 1 to 500"],
  [["audit", "--since", "2026-02-01", "--until", "2026-01-01"], "before --until"],
])("refuses %j and says what to change", async (argv, words) => {
  const result = await run(...argv);
  expect(result).toMatchObject({ exitCode: 2, stdout: "" });
  expect(result.stderr).toContain(words);
});

describe("api", () => {
  let operators: TestOperators;
  let ask = openRecordingShell("");
  beforeAll(async () => {
    operators = await startOperators();
    ask = openRecordingShell(folder, { TRIBUTARY_OPERATOR_TOKEN: operators.token });
  });
  afterAll(() => operators[Symbol.asyncDispose]());

  it("makes one call, and prints its answer", async () => {
    const url = ["--url", `${operators.url}/`];
    const words = [
      "api",
      "post",
      "/accounts",
      '{"name":"afar","credit":"3"}',
      "--once",
      "k",
      ...url,
    ];
    const made = JSON.parse((await ask(...words, "--json")).stdout) as Record<string, unknown>;
    expect(made).toMatchObject({ name: "afar", balance: "3" });
    expect(JSON.parse((await ask(...words)).stdout)).toEqual(made);
    const shown = await ask("api", "GET", `/api/v1/accounts/${String(made["id"])}`, ...url);
    expect(shown).toMatchObject({ exitCode: 0, stderr: "" });
    expect(shown.stdout).toContain('  "name": "afar",\n');
  });

  it("fails with the problem's own words", async () => {
    const unknown = await ask("api", "GET", "/accounts/acct_x", "--url", operators.url, "--json");
    expect(unknown).toMatchObject({ exitCode: 1, stdout: "" });
    expect(JSON.parse(unknown.stderr)).toMatchObject({
      error: { code: "not_found", message: expect.stringMatching(/^404 /) as string },
    });
    const away = await ask("api", "GET", "/accounts", "--url", "http://127.0.0.1:1");
    expect(away.exitCode).toBe(1);
    expect(away.stderr).toContain("--url");
    expect(away.stderr).not.toContain(operators.token);
  });

  it.each([
    [["BREW", "/accounts"], "no method"],
    [["GET", "accounts"], "no path"],
    [["GET", "/accounts", "--url", "here"], "no address"],
  ])("refuses %j and says what to change", async (argv, words) => {
    const result = await ask("api", ...argv);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(words);
    const without = await openRecordingShell(folder)("api", "GET", "/accounts");
    expect(without.stderr).toContain("TRIBUTARY_OPERATOR_TOKEN is not set");
  });

  it("commands with a call make it where --url names a service, and leave the ledger here alone", async () => {
    const afar = async (...argv: readonly string[]): Promise<Record<string, unknown>> => {
      const result = await ask(...argv, "--url", operators.url, "--json");
      expect(result).toMatchObject({ exitCode: 0, stderr: "" });
      return JSON.parse(result.stdout) as Record<string, unknown>;
    };
    const made = await afar("account", "create", "from afar", "--credit", "5");
    expect(made).toMatchObject({ name: "from afar", balance: "5", status: "active" });
    const id = String(made["id"]);
    expect(await afar("account", "credit", id, "2", "--note", "paid")).toMatchObject({
      id,
      balance: "7",
    });
    expect(await afar("account", "disable", id)).toMatchObject({ status: "disabled" });
    const key = await afar("key", "create", id, "--name", "web", "--expires", "90d");
    expect(key).toMatchObject({
      name: "web",
      account: id,
      key: expect.stringMatching(/^trib_/) as string,
    });
    expect(await afar("key", "list", id)).toMatchObject([{ id: key["id"], name: "web" }]);
    expect(await afar("key", "revoke", String(key["id"]))).toMatchObject({ id: key["id"] });
    expect(await afar("operator", "create", "Ann", "--role", "viewer")).toMatchObject({
      name: "Ann",
      token: expect.stringMatching(/^trop_/) as string,
    });
    const log = await afar("audit", "--target", id, "--limit", "2", "--since", "1h");
    expect(log).toMatchObject([{ action: "account.disable" }, { action: "account.credit" }]);
    for (let more = 0; more < 51; more += 1) await operators.ledger.createAccount("many", 0n);
    const all = (await afar("account", "list")) as unknown as readonly unknown[];
    expect(all.length).toBeGreaterThan(51);
    const secret = await ask("key", "create", id, "--url", operators.url);
    expect(secret.stdout).toMatch(/^trib_\S+\n$/);
    const table = await ask("account", "list", "--url", operators.url);
    expect(table.stdout).toMatch(/^ID +NAME/);
    // The ledger of this folder has none of it.
    const here = await run("account", "list", "--json");
    expect(here.stdout).not.toContain("from afar");
  });
});
