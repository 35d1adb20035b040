import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { operatorRoles } from "../../src/ledger/administration/operator-administration.ts";
import { buildOperatorsDocument } from "./operators-document.ts";
import { startOperators, type TestOperators } from "./start-operators.ts";

// The role table: each route, and who may. A route without a row fails, and a row without a route.

const table: Readonly<Record<string, "owner" | "billing" | "viewer">> = {
  "GET /session": "viewer",
  "DELETE /session": "viewer",
  "GET /accounts": "viewer",
  "POST /accounts": "billing",
  "GET /accounts/{id}": "viewer",
  "PATCH /accounts/{id}": "billing",
  "POST /accounts/{id}/credits": "billing",
  "GET /accounts/{id}/entries": "viewer",
  "GET /accounts/{id}/statements/{month}": "viewer",
  "GET /accounts/{id}/keys": "viewer",
  "POST /accounts/{id}/keys": "billing",
  "GET /keys": "viewer",
  "GET /keys/{id}": "viewer",
  "PATCH /keys/{id}": "billing",
  "POST /keys/{id}/rotate": "billing",
  "DELETE /keys/{id}": "billing",
  "GET /price_lists": "viewer",
  "POST /price_lists": "billing",
  "GET /price_lists/{name}": "viewer",
  "PATCH /price_lists/{name}": "billing",
  "GET /usage": "viewer",
  "GET /receipts": "viewer",
  "GET /receipts/{id}": "viewer",
  "GET /generations": "viewer",
  "DELETE /generations/{request_id}": "billing",
  "GET /refusals": "viewer",
  "GET /live": "viewer",
  "GET /status": "viewer",
  "POST /replicas/{id}/drain": "owner",
  "GET /settings": "viewer",
  "GET /deployment": "viewer",
  "GET /operators": "viewer",
  "POST /operators": "owner",
  "DELETE /operators/{id}": "owner",
  "GET /audit": "viewer",
  "GET /webhooks": "viewer",
  "POST /webhooks": "owner",
  "GET /webhooks/{id}": "viewer",
  "PATCH /webhooks/{id}": "owner",
  "DELETE /webhooks/{id}": "owner",
  "POST /webhooks/{id}/rotate": "owner",
  "POST /webhooks/{id}/test": "owner",
  "GET /webhooks/{id}/deliveries": "viewer",
  "POST /webhooks/{id}/deliveries/{event}/resend": "owner",
  "GET /events": "viewer",
  "GET /verify": "viewer",
  "POST /verify": "viewer",
  "POST /seal_keys": "owner",
};

/** Routes that need no token. */
const open: readonly string[] = ["POST /session"];

let operators: TestOperators;
const tokens = new Map<string, string>();
const revoked = { token: "", cookie: "" };
beforeAll(async () => {
  operators = await startOperators();
  for (const role of operatorRoles) tokens.set(role, (await operators.newToken(role)).token);
  const { id, token } = await operators.newToken("owner");
  const { cookie } = await operators.signIn({ token });
  Object.assign(revoked, { token, cookie });
  await operators.ledger.revokeOperator(id);
});
afterAll(() => operators[Symbol.asyncDispose]());

test("the document is what the routes and their schemas say; `npm run openapi` writes it", async () => {
  const { json } = await operators.ask("/api/v1/openapi.json", { token: null });
  expect(json).toEqual(JSON.parse(JSON.stringify(buildOperatorsDocument())));
});

test("the document has the routes of the table and no other", async () => {
  const { json } = await operators.ask("/api/v1/openapi.json", { token: null });
  const paths = json["paths"] as Record<string, Record<string, unknown>>;
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace("/api/v1", "")}`),
  );
  expect(new Set(routes)).toEqual(new Set([...Object.keys(table), ...open]));
  expect(json["openapi"]).toBe("3.1.0");
});

describe.each(Object.entries(table))("%s", (route, least) => {
  const [method = "", path = ""] = route.split(" ");
  const url = `/api/v1${path.replace(/\{\w+\}/, "unknown")}`;
  const bodies = { body: method === "GET" || method === "DELETE" ? undefined : "{}" };

  test.each(operatorRoles)("as %s", async (role) => {
    const token = tokens.get(role) ?? null;
    const { json, status } = await operators.ask(url, { method, token, ...bodies });
    const may = operatorRoles.indexOf(role) <= operatorRoles.indexOf(least);
    expect(status === 403).toBe(!may);
    expect(status).not.toBe(401);
    if (!may) expect(json).toMatchObject({ code: "role_missing" });
  });

  test("without a token, and with a token or a session of a revoked operator", async () => {
    const without = await operators.ask(url, { method, token: null, ...bodies });
    expect(without).toMatchObject({ status: 401, json: { code: "token_unknown" } });
    const byToken = await operators.ask(url, { method, token: revoked.token, ...bodies });
    expect([401, 429]).toContain(byToken.status);
    const headers = { cookie: revoked.cookie, origin: operators.url };
    const bySession = await operators.ask(url, { method, token: null, ...bodies, headers });
    expect(bySession).toMatchObject({ status: 401, json: { code: "session_over" } });
  });
});

test.each(open)("%s is answered without a token, whatever else is sent", async (route) => {
  const [method = "", path = ""] = route.split(" ");
  for (const role of [...operatorRoles, null]) {
    const token = role === null ? null : (tokens.get(role) ?? null);
    const { json, status } = await operators.ask(`/api/v1${path}`, { method, token, body: "{}" });
    expect([status, json["code"]]).toEqual([400, "invalid_value"]);
  }
});

test("an API key administers nothing", async () => {
  const account = await operators.ledger.createAccount("a", 0n);
  const { secret } = await operators.ledger.createKey(account.id, "k");
  const { status } = await operators.ask("/api/v1/accounts", { token: secret });
  expect([401, 429]).toContain(status);
});

test("wrong tokens of an address are counted, and a right one is never refused for them", async () => {
  const own = await startOperators();
  await using _ = own;
  const wrong = (): Promise<number> =>
    own.ask("/api/v1/accounts", { token: "trop_x" }).then(({ status }) => status);
  const statuses: number[] = [];
  for (let tries = 0; tries < 12; tries += 1) statuses.push(await wrong());
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
  expect((await own.ask("/api/v1/accounts")).status).toBe(200);
});
