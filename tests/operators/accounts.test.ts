import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startOperators, type TestOperators } from "./start-operators.ts";

// What operators note of accounts, changes of one version, and statements as files and pages.

type Json = Readonly<Record<string, unknown>>;

let operators: TestOperators;
beforeAll(async () => {
  operators = await startOperators();
});
afterAll(() => operators[Symbol.asyncDispose]());

async function make(body: object): Promise<Json> {
  return (await operators.ask("/api/v1/accounts", { body })).json;
}

describe("an account", () => {
  test("is found by the name that another system has for it, which no other account has", async () => {
    const made = await make({ name: "shop", external_id: "cus_1", metadata: { plan: "gold" } });
    expect(made).toMatchObject({ external_id: "cus_1", metadata: { plan: "gold" }, version: 1 });
    const found = await operators.ask("/api/v1/accounts?external_id=cus_1");
    expect(found.json["data"]).toEqual([made]);
    expect((await operators.ask("/api/v1/accounts?external_id=cus_2")).json["data"]).toEqual([]);
    const second = await operators.ask("/api/v1/accounts", {
      body: { name: "other", external_id: "cus_1" },
    });
    expect(second).toMatchObject({ status: 409, json: { param: "external_id" } });
    const other = await make({ name: "other" });
    const path = `/api/v1/accounts/${String(other["id"])}`;
    const taken = await operators.ask(path, { method: "PATCH", body: { external_id: "cus_1" } });
    expect(taken).toMatchObject({ status: 409, json: { param: "external_id" } });
    await operators.ask(`/api/v1/accounts/${String(made["id"])}`, {
      method: "PATCH",
      body: { external_id: null },
    });
    const free = await operators.ask(path, { method: "PATCH", body: { external_id: "cus_1" } });
    expect(free).toMatchObject({ status: 200, json: { external_id: "cus_1", version: 2 } });
  });

  test("is searched by a part of its name, its id or its external id, in either case", async () => {
    const made = await make({ name: "Ärzte 100% Haus_1", external_id: "Crm-77" });
    const found = async (search: string): Promise<unknown> => {
      const query = new URLSearchParams({ search });
      return (await operators.ask(`/api/v1/accounts?${query.toString()}`)).json["data"];
    };
    const { id } = made;
    for (const text of ["Ärzte", "haus_", "100%", "CRM-7", String(id).toUpperCase()])
      expect(await found(text), text).toEqual([made]);
    // Neither a pattern nor what begins in the name and ends in the id finds it.
    for (const text of ["100_", "h%s_1", `1${String(id)}`, "\\", "!"])
      expect(await found(text), text).toEqual([]);
    const control = await operators.ask("/api/v1/accounts?search=a%00b");
    expect(control).toMatchObject({ status: 400, json: { param: "search" } });
    const second = await make({ name: "haus_2" });
    expect(await found("HAUS_")).toEqual([second, made]);
    const query = "/api/v1/accounts?search=haus_&limit=1";
    const page = (await operators.ask(query)).json;
    const rest = await operators.ask(`${query}&cursor=${String(page["next_cursor"])}`);
    expect([page["data"], rest.json["data"]]).toEqual([[second], [made]]);
    const both = `/api/v1/accounts?id=${String(id)},acct_none,${String(second["id"])}`;
    expect((await operators.ask(both)).json["data"]).toEqual([second, made]);
    expect((await operators.ask(`${both}&search=HAUS_1`)).json["data"]).toEqual([made]);
  });

  test("of two made at once with one external id one is made", async () => {
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        operators.ask("/api/v1/accounts", { body: { name: "a", external_id: "cus_once" } }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 409, 409, 409, 409,
    ]);
  });

  test("has its metadata merged, a pair at a time", async () => {
    const { id } = await make({ name: "shop", metadata: { plan: "gold", city: "Bern" } });
    const patch = (metadata: unknown): Promise<{ status: number; json: Json }> =>
      operators.ask(`/api/v1/accounts/${String(id)}`, { method: "PATCH", body: { metadata } });
    expect((await patch({ plan: null, __proto__x: "1" })).json["metadata"]).toEqual({
      city: "Bern",
      __proto__x: "1",
    });
    const many = Object.fromEntries(Array.from({ length: 15 }, (_, at) => [`n${String(at)}`, "x"]));
    expect(await patch(many)).toMatchObject({ status: 400, json: { param: "metadata" } });
    for (const wrong of [{ a: "x".repeat(501) }, { ["n".repeat(41)]: "x" }, { "": "x" }])
      expect(await patch(wrong)).toMatchObject({ status: 400, json: { param: "metadata" } });
    const unkept = await patch({ a: "\u0000" });
    expect(unkept).toMatchObject({ status: 400, json: { param: "metadata.a" } });
    expect((await patch({ a: 1 })).status).toBe(400);
    expect((await patch(null)).json["metadata"]).toEqual({});
  });

  test("that changed since it was read is left alone by a change for its old version", async () => {
    const { id } = await make({ name: "shop" });
    const patch = (version: string, body: object): Promise<{ status: number; json: Json }> =>
      operators.ask(`/api/v1/accounts/${String(id)}`, {
        method: "PATCH",
        body,
        headers: { "if-match": version },
      });
    expect((await patch('"1"', { name: "store" })).json).toMatchObject({ version: 2 });
    const late = await patch("1", { name: "late" });
    expect(late).toMatchObject({
      status: 412,
      json: { code: "version_conflict", param: "if-match" },
    });
    expect((await patch("*", { name: "any" })).status).toBe(200);
    expect(await patch("x", { name: "b" })).toMatchObject({
      status: 400,
      json: { param: "if-match" },
    });
    // Credit changes no version: what operators set is as it was.
    await operators.ask(`/api/v1/accounts/${String(id)}/credits`, { body: { amount: "1" } });
    expect((await patch("3", { status: "disabled" })).json).toMatchObject({ version: 4 });
  });

  test("of changes at once for one version one is made", async () => {
    const { id } = await make({ name: "shop" });
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, at) =>
        operators.ask(`/api/v1/accounts/${String(id)}`, {
          method: "PATCH",
          body: { name: `shop ${String(at)}` },
          headers: { "if-match": "1" },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 412, 412, 412, 412,
    ]);
  });
});

test("a key that changed since it was read is left alone too", async () => {
  const { id } = await make({ name: "shop" });
  const { json } = await operators.ask(`/api/v1/accounts/${String(id)}/keys`, { body: {} });
  const patch = (version: string): Promise<{ status: number }> =>
    operators.ask(`/api/v1/keys/${String(json["id"])}`, {
      method: "PATCH",
      body: { name: `of ${version}` },
      headers: { "if-match": version },
    });
  expect((await patch(String(json["version"]))).status).toBe(200);
  expect((await patch(String(json["version"]))).status).toBe(412);
});

test("a refund shows on its receipt, and credit of a reference once", async () => {
  const { id } = await make({ name: "shop" });
  const body = { kind: "top_up", amount: "25", reference: "pi_1" };
  const credit = (change: object): Promise<{ status: number; json: Json }> =>
    operators.ask(`/api/v1/accounts/${String(id)}/credits`, { body: { ...body, ...change } });
  const first = await credit({});
  const again = await credit({ note: "sent again" });
  expect(again.json["entry"]).toEqual(first.json["entry"]);
  expect(again.json).toMatchObject({ account: { balance: "25" } });
  expect(await credit({ amount: "26" })).toMatchObject({
    status: 409,
    json: { code: "reference_conflict", param: "reference" },
  });
  expect(await credit({ reference: "pi_2", receipt: "req_x" })).toMatchObject({
    status: 400,
    json: { param: "receipt" },
  });
  expect(await credit({ reference: "pi_2", receipt: "req_x", kind: "refund" })).toMatchObject({
    status: 404,
    json: { param: "receipt" },
  });
  expect((await credit({ kind: "gift" })).json).toMatchObject({ param: "kind" });
});

async function fetchText(path: string, accept: string): Promise<Response> {
  const { token } = await operators.newToken("viewer");
  return fetch(operators.url + path, { headers: { accept, authorization: `Bearer ${token}` } });
}

describe("a statement", () => {
  const hostile = '=cmd|"/c calc"!A1<script>alert(1)</script>';
  const month = new Date().toISOString().slice(0, 7);
  let path = "";
  beforeAll(async () => {
    const { id } = await make({ name: "<b>shop</b>" });
    path = `/api/v1/accounts/${String(id)}`;
    await operators.ask(`${path}/credits`, {
      body: { amount: "25", reference: "-1+1", note: hostile },
    });
    await operators.ask(`${path}/credits`, { body: { amount: "-2.5", kind: "correction" } });
  });

  test("is JSON", async () => {
    const { json } = await operators.ask(`${path}/statements/${month}`);
    expect(json).toMatchObject({
      month,
      opening_balance: "0",
      top_ups: "25",
      corrections: "-2.5",
      charged: "0",
      closing_balance: "22.5",
      credits_total: 2,
      credits: [{ note: hostile, reference: "-1+1" }, { amount: "-2.5" }],
    });
    const wrong = await operators.ask(`${path}/statements/2026-13`);
    expect(wrong).toMatchObject({ status: 400, json: { param: "month" } });
  });

  test("is CSV in which no cell is a formula", async () => {
    const answer = await fetchText(`${path}/statements/${month}`, "text/csv");
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const lines = (await answer.text()).trimEnd().split("\r\n");
    expect(lines[0]).toBe("what,at,amount,requests,reference,receipt,note");
    expect(lines[2]).toMatch(/^top-up,[^,]+,25,,'-1\+1,,"'=cmd/);
    expect(lines[3]).toMatch(/^correction,[^,]+,-2\.5,,,,$/);
    expect(lines[4]).toBe(`"closing balance",${month},22.5,,,,`);
  });

  test("is a page that runs nothing of what is written in it", async () => {
    const answer = await fetchText(`${path}/statements/${month}?format=html`, "*/*");
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+';/);
    expect(policy).not.toContain("unsafe");
    const page = await answer.text();
    expect(page).toContain("&lt;b&gt;shop&lt;/b&gt;");
    expect(page).not.toMatch(/<script|<b>/);
  });
});
