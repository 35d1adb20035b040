import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openArchiveFile } from "../../src/ledger/archive/archive-file.ts";
import { archiveBefore } from "../../src/ledger/archive/archive-run.ts";
import { textAnswer } from "../doubles/scripted-deployment.ts";
import { readCallersDocument } from "../wire/callers-document.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
let mine: Awaited<ReturnType<TestService["newKey"]>>;
let other: Awaited<ReturnType<TestService["newKey"]>>;
const ids: string[] = [];

beforeAll(async () => {
  service = await startService();
  service.deployment.answerAlways(...textAnswer("Hello"));
  [mine, other] = [await service.newKey("2"), await service.newKey("3")];
  for (const [label, { key }] of [
    ["ann", mine],
    ["=1+1", mine],
    ["bob", mine],
    ["eve", other],
  ] as const) {
    const [{ body, path }] = formats;
    const answer = await service.post(path, body, { key, headers: { "x-tributary-label": label } });
    await answer.text();
    ids.push(answer.headers.get("x-request-id") ?? "");
  }
});
afterAll(() => service[Symbol.asyncDispose]());

function get(path: string, { key = mine.key, accept = "*/*" } = {}): Promise<Response> {
  return fetch(service.url + path, { headers: { authorization: `Bearer ${key}`, accept } });
}

type Json = Readonly<Record<string, unknown>>;

async function dataOf(path: string, init = {}): Promise<readonly Json[]> {
  const answer = await get(path, init);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  return ((await answer.json()) as { readonly data: readonly Json[] }).data;
}

describe("what callers read of their own account", () => {
  it("is usage by any grouping, as JSON and as a table", async () => {
    const [month] = await dataOf("/account/usage?by=month&timezone=Europe/Berlin");
    expect(month).toMatchObject({ requests: 3, charged: "0.00012", completed: 3 });
    expect((await dataOf("/account/usage?by=label")).map(({ label }) => label)).toEqual([
      "=1+1",
      "ann",
      "bob",
    ]);
    expect(await dataOf("/account/usage?by=label&until=2020-01-01T00:00:00Z")).toEqual([]);
    const csv = await get("/account/usage?by=label", { accept: "text/csv" });
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const lines = (await csv.text()).split("\r\n");
    expect(lines[0]).toMatch(/^label,requests,/u);
    const none = await get("/account/usage?by=day,key&until=2020-01-01T00:00:00Z", {
      accept: "text/csv",
    });
    expect(await none.text()).toMatch(/^day,key,requests,.*,charged,key_name,begins_at,.*\r\n$/u);
    // No spreadsheet computes what a caller wrote into a label.
    expect(lines[1]).toMatch(/^'=1\+1,1,/u);
  });

  it("is the journal, page by page", async () => {
    const all = await dataOf("/account/entries?limit=500");
    expect(all.map(({ kind }) => kind)).toEqual([
      ...Array.from({ length: 6 }, (_, at) => (at % 2 === 0 ? "settle" : "reserve")),
      "credit",
    ]);
    expect(all[0]).toMatchObject({ balance: "1.99988", held: "0", request: ids[2] });
    const paged: Json[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const answer = await get(
        `/account/entries?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      const page = (await answer.json()) as { data: Json[]; next_cursor: string | null };
      paged.push(...page.data);
      cursor = page.next_cursor;
    }
    expect(paged).toEqual(all);
  });

  it("is receipts by their filters, as pages and as files", async () => {
    expect((await dataOf("/receipts")).map(({ id }) => id)).toEqual(ids.slice(0, 3).toReversed());
    expect((await dataOf("/receipts?label=ann")).map(({ id }) => id)).toEqual([ids[0]]);
    for (const nothing of [
      "outcome=failed",
      "charged_at_least=1",
      "format=none",
      "key=key_none",
      "until=2020-01-01T00:00:00Z",
    ])
      expect(await dataOf(`/receipts?${nothing}`)).toEqual([]);
    const page = (await (await get("/receipts?limit=1")).json()) as { next_cursor: string };
    expect(
      (await dataOf(`/receipts?limit=1&cursor=${page.next_cursor}`)).map(({ id }) => id),
    ).toEqual([ids[1]]);
    const csv = await (await get("/receipts", { accept: "text/csv" })).text();
    expect(
      csv
        .trimEnd()
        .split("\r\n")
        .map((line) => line.split(",")[0]),
    ).toEqual(["id", ...ids.slice(0, 3).toReversed()]);
    const file = await (await get("/receipts?label=bob", { accept: "application/jsonl" })).text();
    expect(
      file
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as Json)["id"]),
    ).toEqual([ids[2]]);
  });

  it("is receipts, and until when some may be archived", async () => {
    const { accountId, key } = await service.newKey("1");
    const [{ body, path }] = formats;
    const answer = await service.post(path, body, { key });
    await answer.text();
    const list = async (): Promise<Json> =>
      (await (await get("/receipts", { key })).json()) as Json;
    const before = await list();
    const [receipt] = before["data"] as readonly Json[];
    expect(before["archived_until"]).toBe(null);
    const endedMs = Date.parse(String(receipt?.["resolved_at"]));
    const folder = await mkdtemp(join(tmpdir(), "tributary-archive-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await using file = openArchiveFile(folder, endedMs);
    const order = { accountIds: [accountId], beforeMs: endedMs + 1 };
    await archiveBefore(service.ledger, order, { file, rest: () => Promise.resolve() });
    expect(await list()).toEqual({
      data: [],
      next_cursor: null,
      archived_until: new Date(endedMs + 1).toISOString(),
    });
    const others = (await (await get("/receipts")).json()) as Json;
    expect(others["archived_until"]).toBe(null);
  });

  it("is the statement of a month, as JSON, as a table and as a page", async () => {
    const month = new Date().toISOString().slice(0, 7);
    const path = `/account/statements/${month}`;
    const answer = await get(path);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const statement = (await answer.json()) as Json;
    expect(statement).toMatchObject({
      account: mine.accountId,
      month,
      opening_balance: "0",
      top_ups: "2",
      charged: "0.00012",
      closing_balance: "1.99988",
    });
    const { balance, head } = (await (await get("/account")).json()) as Json;
    expect([statement["closing_balance"], statement["head"]]).toEqual([balance, head]);
    const csv = await get(path, { accept: "text/csv" });
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(await csv.text()).toMatch(/^what,at,amount,.*\r\n"opening balance",/u);
    const page = await get(path, { accept: "text/html,*/*" });
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await page.text()).toContain(`<h1>Statement of ${month}</h1>`);
    const asked = await get(`${path}?format=json`, { accept: "text/html" });
    expect(await asked.json()).toEqual(statement);
    const other = await get("/account/statements/2020-01");
    expect(await other.json()).toMatchObject({ closing_balance: "0", days: [], head: null });
  });

  it("is no statement of a month that was rolled up, and says whom to ask", async () => {
    const { accountId, key } = await service.newKey("1");
    const credit = () => service.ledger.creditAccount(accountId, 1_000_000_000n, null);
    await credit();
    await service.ledger.checkpoint(accountId, Date.now() + 60_000);
    await credit();
    const answer = await get("/account/statements/2026-01", { key });
    const { error } = (await answer.json()) as { readonly error: Json };
    expect([answer.status, error["code"]]).toEqual([404, "not_found"]);
    expect(error["message"]).toMatch(/^There is no statement of 2026-01.*Ask the operator/u);
    expect(error["message"]).not.toContain("tributary ");
  });

  it("is described by a document, without a key", async () => {
    const answer = await fetch(`${service.url}/openapi.json`);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await answer.json()).toEqual(readCallersDocument());
  });

  it("has nothing of another account, whoever is named", async () => {
    const paths = [
      "/account/usage?by=label",
      "/account/entries",
      "/receipts",
      "/account/usage?by=account,key",
      `/account/statements/${new Date().toISOString().slice(0, 7)}`,
    ];
    for (const path of paths)
      for (const accept of ["*/*", "text/csv", "application/jsonl"]) {
        const text = await (await get(path, { key: other.key, accept })).text();
        for (const foreign of [mine.accountId, ...ids.slice(0, 3), "ann", "bob"])
          expect(text).not.toContain(foreign);
      }
    for (const path of [
      "/account/usage",
      "/account/entries",
      "/receipts",
      "/account/statements/2026-01",
    ]) {
      expect((await get(`${path}?account=${mine.accountId}`, { key: other.key })).status).toBe(400);
      expect((await fetch(service.url + path)).status).toBe(401);
    }
    const [keyOfMine] = await service.ledger.listKeys(mine.accountId);
    expect(await dataOf(`/receipts?key=${keyOfMine?.id ?? ""}`, { key: other.key })).toEqual([]);
    expect(await dataOf(`/account/usage?key=${keyOfMine?.id ?? ""}`, { key: other.key })).toEqual(
      [],
    );
  });

  it.each([
    ["/account/usage?by=year", "by"],
    ["/account/usage?by=hour,day", "by"],
    ["/account/usage?timezone=Berlin", "timezone"],
    ["/account/usage?since=yesterday", "since"],
    ["/account/usage?by=day&by=key", "by"],
    ["/account/entries?limit=0", "limit"],
    ["/account/entries?limit=501", "limit"],
    ["/account/entries?cursor=%25", "cursor"],
    ["/receipts?cursor=nothing", "cursor"],
    ["/account/statements/2026-13", "month"],
    ["/account/statements/%00", "month"],
    ["/account/statements/2026-01?format=pdf", "format"],
    ["/receipts?charged_at_least=much", "charged_at_least"],
    ["/receipts?fromat=messages", "fromat"],
  ])("%s names what is wrong", async (path, param) => {
    const answer = await get(path);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
  });
});
