import { request } from "node:http";
import { text } from "node:stream/consumers";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openArchiveFile } from "../../src/ledger/archive/archive-file.ts";
import { archiveBefore } from "../../src/ledger/archive/archive-run.ts";
import { listenForOperators } from "../../src/operators/operator-server.ts";
import { defaultSettings } from "../ledger/support.ts";
import { unwatchedService } from "./unwatched-service.ts";
import { serveRequests, startOperators, type TestOperators } from "./start-operators.ts";

// The operators' API as a program of theirs meets it.

let operators: TestOperators;
beforeAll(async () => (operators = await startOperators()));
afterAll(() => operators[Symbol.asyncDispose]());

type Json = Record<string, unknown>;

async function makeAccount(credit = "10"): Promise<string> {
  const { json } = await operators.ask("/api/v1/accounts", { body: { name: "shop", credit } });
  return String(json["id"]);
}

describe("accounts", () => {
  test("are made, shown, changed and credited", async () => {
    const made = await operators.ask("/api/v1/accounts", { body: { name: "shop", credit: "10" } });
    expect(made).toMatchObject({ status: 200, type: "application/json" });
    const { id } = made.json;
    expect(made.json).toEqual({
      id: expect.stringMatching(/^acct_/) as string,
      name: "shop",
      status: "active",
      balance: "10",
      held: "0",
      available: "10",
      limits: { concurrent_requests: null, requests_per_minute: null, output_tokens_max: null },
      price_list: null,
      low_balance_at: null,
      running: 0,
      grant: null,
      grant_left: "0",
      grant_next_at: null,
      external_id: null,
      metadata: {},
      version: 1,
      head: expect.stringMatching(/^acct_\w+:1:[0-9a-f]{64}$/) as string,
      created_at: expect.stringMatching(/Z$/) as string,
    });
    const path = `/api/v1/accounts/${String(id)}`;
    expect((await operators.ask(path)).json).toEqual(made.json);
    const changed = await operators.ask(path, {
      method: "PATCH",
      body: { name: "store", status: "disabled" },
    });
    expect(changed.json).toMatchObject({ name: "store", status: "disabled" });
    const credited = await operators.ask(`${path}/credits`, {
      body: { amount: "-2.5", note: "returned" },
    });
    expect(credited.json).toMatchObject({
      entry: { sequence: 2, kind: "top_up", amount: "-2.5", note: "returned" },
      account: { balance: "7.5" },
    });
    const entries = (await operators.ask(`${path}/entries`)).json["data"];
    expect(entries).toMatchObject([
      { sequence: 2, kind: "top_up", amount: "-2.5", balance: "7.5", note: "returned" },
      { sequence: 1, kind: "credit", amount: "10", balance: "10", held: "0" },
    ]);
    expect((entries as Json[])[0]?.["actor"]).toMatch(/^oper_/);
    const older = await operators.ask(`${path}/entries?before=2`);
    expect(older.json).toMatchObject({ data: [{ sequence: 1 }], next_cursor: null });
    const log = (await operators.ask(`/api/v1/audit?target=${String(id)}`)).json["data"];
    expect((log as Json[]).map((row) => row["action"])).toEqual([
      "account.credit",
      "account.disable",
      "account.create",
    ]);
  });

  test("are listed in pages that inserts do not move", async () => {
    const made = [await makeAccount(), await makeAccount(), await makeAccount()];
    const first = await operators.ask("/api/v1/accounts?limit=2");
    const seen = (first.json["data"] as Json[]).map((row) => row["id"]);
    expect(seen).toHaveLength(2);
    await makeAccount();
    let cursor = first.json["next_cursor"] as string | null;
    while (cursor !== null) {
      const page = await operators.ask(`/api/v1/accounts?limit=2&cursor=${cursor}`);
      seen.push(...(page.json["data"] as Json[]).map((row) => row["id"]));
      cursor = page.json["next_cursor"] as string | null;
    }
    expect(seen).toEqual(expect.arrayContaining(made));
    expect(new Set(seen).size).toBe(seen.length);
  });
});

test("keys are made once, found by their beginning, and revoked", async () => {
  const account = await makeAccount();
  const init = { body: { name: "web" }, headers: { "idempotency-key": "one" } };
  const path = `/api/v1/accounts/${account}/keys`;
  const { json: made } = await operators.ask(path, init);
  expect(made).toMatchObject({ name: "web", secret_shown: false });
  const secret = String(made["secret"]);
  expect(secret).toMatch(/^trib_/);
  const { json: again } = await operators.ask(path, init);
  expect(again).toEqual({ ...made, secret: null, secret_shown: true });
  expect((await operators.ask(path)).json["data"]).toHaveLength(1);
  const prefix = secret.slice(0, secret.lastIndexOf("_") + 4);
  const found = await operators.ask(`/api/v1/keys?prefix=${prefix}`);
  expect(found.json["data"]).toMatchObject([{ id: made["id"], account }]);
  expect((await operators.ask(`/api/v1/keys?prefix=trib_none_none`)).json["data"]).toEqual([]);
  const revoked = await operators.ask(`/api/v1/keys/${String(made["id"])}`, { method: "DELETE" });
  expect(revoked.json["revoked_at"]).toMatch(/Z$/);
  expect((await operators.ask(`/api/v1/keys/${String(made["id"])}`)).json).toEqual(revoked.json);
});

test("usage of several accounts is that of each, and of no other", async () => {
  const [one, other, third] = [
    await serveRequests(operators.ledger, 1),
    await serveRequests(operators.ledger, 2),
    await serveRequests(operators.ledger, 1),
  ];
  const rowsOf = async (accounts: string): Promise<Json[]> => {
    const { json } = await operators.ask(`/api/v1/usage?by=day,account&account=${accounts}`);
    return json["data"] as Json[];
  };
  const together = await rowsOf(`${one},${other}`);
  expect(together).toHaveLength(2);
  expect(together).toEqual(
    expect.arrayContaining([...(await rowsOf(one)), ...(await rowsOf(other))]),
  );
  const { json } = await operators.ask(`/api/v1/usage?by=label&account=${other},${third}`);
  expect(json["data"]).toMatchObject([{ requests: 3 }]);
});

test("a list of receipts says until when some may be archived", async () => {
  const account = await serveRequests(operators.ledger, 2);
  const path = `/api/v1/receipts?account=${account}`;
  const before = await operators.ask(path);
  expect(before.json).toMatchObject({ archived_until: null });
  const ends = (before.json["data"] as Json[]).map((row) => Date.parse(String(row["resolved_at"])));
  const endedMs = Math.max(...ends.filter((ms) => !Number.isNaN(ms)));
  const folder = await mkdtemp(join(tmpdir(), "tributary-archive-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await using file = openArchiveFile(folder, endedMs);
  const order = { accountIds: [account], beforeMs: endedMs + 1 };
  await archiveBefore(operators.ledger, order, { file, rest: () => Promise.resolve() });
  const { json } = await operators.ask(path);
  expect(json).toMatchObject({ archived_until: new Date(endedMs + 1).toISOString() });
  expect((json["data"] as Json[]).map(({ state }) => state)).toEqual(["open"]);
});

test("what requests used is what their receipts add up to", async () => {
  const account = await serveRequests(operators.ledger, 3);
  const all = await operators.ask(`/api/v1/receipts?account=${account}&limit=2`);
  expect(all.json["data"]).toHaveLength(2);
  const rest = await operators.ask(
    `/api/v1/receipts?account=${account}&cursor=${String(all.json["next_cursor"])}`,
  );
  expect(rest.json["next_cursor"]).toBeNull();
  const receipts = [...(all.json["data"] as Json[]), ...(rest.json["data"] as Json[])];
  expect(new Set(receipts.map(({ id }) => id)).size).toBe(4);
  const ended = receipts.filter(({ state }) => state === "settled");
  const sum = ended.reduce((total, { charged }) => total + Number(charged) * 1e9, 0);
  const usage = await operators.ask(`/api/v1/usage?account=${account}&by=format`);
  const [row] = usage.json["data"] as Json[];
  expect(row).toMatchObject({ requests: 3 });
  expect(Math.round(Number(row?.["charged"]) * 1e9)).toBe(Math.round(sum));
  const running = await operators.ask("/api/v1/generations");
  const its = (running.json["data"] as Json[]).filter((row) => row["account"] === account);
  expect(its).toMatchObject([{ state: "open", charged: null }]);
  const [one] = ended;
  const receipt = await operators.ask(`/api/v1/receipts/${String(one?.["id"])}`);
  expect(receipt.json).toEqual(one);
  const none = await operators.ask(
    `/api/v1/receipts?account=${account}&outcome=failed&format=messages&key=key_x&charged_at_least=1000&since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z`,
  );
  expect(none.json).toEqual({ data: [], next_cursor: null, archived_until: null });
});

test("a change under an idempotency-key happens once, whatever is sent at once", async () => {
  const account = await makeAccount("0");
  const path = `/api/v1/accounts/${account}/credits`;
  const headers = { "idempotency-key": "event-17" };
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => operators.ask(path, { body: { amount: "3" }, headers })),
  );
  for (const { json } of answers) expect(json["account"]).toMatchObject({ balance: "3" });
  const other = await operators.ask(path, { body: { amount: "4" }, headers });
  expect(other).toMatchObject({ status: 409, json: { code: "idempotency_conflict" } });
  expect((await operators.ask(`/api/v1/accounts/${account}`)).json).toMatchObject({ balance: "3" });
});

test("the ledger is verified in the background", async () => {
  expect((await operators.ask("/api/v1/verify", { method: "POST" })).status).toBe(202);
  await expect
    .poll(async () => (await operators.ask("/api/v1/verify")).json)
    .toMatchObject({ state: "ended", report: { ok: true, problems: [] } });
});

describe("what is wrong is said", () => {
  test.each([
    ["an unknown field", "/accounts", { name: "a", color: "red" }, 400, "invalid_value", "color"],
    ["a missing field", "/accounts", {}, 400, "invalid_value", "name"],
    ["another type", "/accounts", { name: 7 }, 400, "invalid_value", "name"],
    ["no amount", "/accounts", { name: "a", credit: "ten" }, 400, "invalid_value", "credit"],
    ["a negative start", "/accounts", { name: "a", credit: "-1" }, 400, "invalid_value", "credit"],
    ["no JSON", "/accounts", "{", 400, "invalid_value", undefined],
    ["an unknown account", "/accounts/acct_x/credits", { amount: "1" }, 404, "not_found", "id"],
    [
      "too large a body",
      "/accounts",
      { name: "x".repeat(70_000) },
      413,
      "body_too_large",
      undefined,
    ],
    ["another page", "/accounts?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
    ["too many rows", "/accounts?limit=501", undefined, 400, "invalid_value", "limit"],
    ["an unknown parameter", "/accounts?color=red", undefined, 400, "invalid_value", "color"],
    ["no time", "/receipts?since=yesterday", undefined, 400, "invalid_value", "since"],
    ["no path", "/nothing", undefined, 404, "not_found", undefined],
    ["an unknown receipt", "/receipts/req_x", undefined, 404, "not_found", "id"],
    ["an unknown key", "/keys/key_x", undefined, 404, "not_found", "id"],
  ])("%s", async (_name, path, body, status, code, param) => {
    const answer = await operators.ask(`/api/v1${path}`, { body });
    expect(answer).toMatchObject({
      status,
      type: "application/problem+json",
      json: { code, status },
    });
    expect(answer.json["param"]).toBe(param);
    expect(answer.json["request_id"]).toMatch(/^req_/);
    expect(answer.json["detail"]).toMatch(/\.$/);
    expect(operators.failures).toEqual([]);
  });

  test("more is taken back than there is", async () => {
    const account = await makeAccount("1");
    const answer = await operators.ask(`/api/v1/accounts/${account}/credits`, {
      body: { amount: "-2" },
    });
    expect(answer).toMatchObject({ status: 409, json: { code: "not_possible" } });
  });

  test("an idempotency-key with other characters", async () => {
    const headers = { "idempotency-key": "a b" };
    const answer = await operators.ask("/api/v1/accounts", { body: { name: "a" }, headers });
    expect(answer).toMatchObject({ status: 400, json: { param: "idempotency-key" } });
  });
});

test("a body needs its type, and a path that is there for other methods says which", async () => {
  const account = await makeAccount();
  const path = `/api/v1/accounts/${account}`;
  for (const type of [undefined, "text/plain", "application/x-www-form-urlencoded"]) {
    const headers = {
      authorization: `Bearer ${operators.token}`,
      ...(type && { "content-type": type }),
    };
    const body = type === undefined ? {} : { body: '{"status":"disabled"}' };
    const answer = await fetch(operators.url + path, { method: "PATCH", headers, ...body });
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject({ code: "unsupported_media_type" });
  }
  expect((await operators.ask(path)).json).toMatchObject({ status: "active" });
  const other = await operators.ask(path, { method: "DELETE" });
  expect(other).toMatchObject({ status: 405, json: { code: "method_not_allowed" } });
  expect(other.headers.get("allow")).toBe("GET, PATCH");
});

test("metrics that cannot be made are answered 500, and the listener goes on", async () => {
  const failures: unknown[] = [];
  await using server = await listenForOperators(
    { host: "127.0.0.1", port: 0, spare: true, publicUrl: null, tls: null },
    {
      ledger: () => Promise.reject(new Error("no ledger")),
      service: unwatchedService(),
      metrics: () => Promise.reject(new Error("no metrics")),
      page: () => Promise.reject(new Error("no page")),
      privateAddresses: "refuse",
      clientOf: () => "127.0.0.1",
      telemetry: { certificateUsed() {}, lifecycle() {} },
      version: "1.2.3",
      prices: defaultSettings.prices,
      onFailure: ({ cause }) => void failures.push(cause),
    },
  );
  const answer = await fetch(`${server.url}/metrics`);
  expect([answer.status, await answer.json()]).toMatchObject([500, { code: "internal" }]);
  expect(failures).toMatchObject([{ message: "no metrics" }]);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
});

test("metrics and health need no token, and only known hosts are served", async () => {
  const answer = async (host: string, path: string): Promise<readonly [number, string]> => {
    const asking = request(`${operators.url}${path}`, { headers: { host } });
    asking.end();
    const [response] = (await once(asking, "response")) as [IncomingMessage];
    return [response.statusCode ?? 0, await text(response)];
  };
  expect(await answer("localhost:8081", "/metrics")).toEqual([200, "# metrics\n"]);
  expect(await answer("[::1]:8081", "/healthz")).toEqual([200, '{"status":"ok"}']);
  expect((await answer("operators.example", "/healthz"))[0]).toBe(200);
  expect((await answer("evil.example", "/healthz"))[0]).toBe(403);
  expect((await answer("127.0.0.1", "/nowhere"))[0]).toBe(404);
  expect((await answer("127.0.0.1", "/"))[0]).toBe(200);
  expect((await answer("evil.example", "/"))[0]).toBe(403);
});
