import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { orderOf } from "../ledger/orders.ts";
import { startOperators, type TestOperators } from "./start-operators.ts";

// Everything that can be wrong with a call is a problem that names the field and says what to do, and nothing is half done.

let operators: TestOperators;
const known = { account: "", key: "", receipt: "", hook: "", expired: "" };
let before: unknown;
let nowMs = Date.now();

beforeAll(async () => {
  operators = await startOperators({ now: () => nowMs });
  const { ledger } = operators;
  const account = await ledger.createAccount("shop", 5n * 10n ** 9n);
  const other = await ledger.createAccount("other", 10n ** 9n, { externalId: "taken" });
  const { record, secret } = await ledger.createKey(account.id, "web");
  const { secret: foreign } = await ledger.createKey(other.id, "web");
  const order = orderOf(await ledger.authorize(foreign, true), { requestId: "req_other" });
  await ledger.admit(order);
  const { record: hook } = await ledger.createWebhook({
    ...{ url: "https://shop.example/", description: "", types: null, status: "active" },
  });
  await ledger.createPriceList({
    name: "default",
    prices: [price(null), price(2_000_000_000_000)],
  });
  await ledger.authorize(secret, true);
  const expiresAtMs = nowMs + 1_000;
  const token = await ledger.createOperator({ name: "gone", role: "owner", expiresAtMs });
  Object.assign(known, {
    account: account.id,
    key: record.id,
    receipt: order.requestId,
    hook: hook.id,
    expired: token.secret,
  });
  before = await everything();
});
afterAll(() => operators[Symbol.asyncDispose]());

const price = (effectiveFromMs: number | null) => ({
  effectiveFromMs,
  inputNanosPerMillion: 10n ** 9n,
  outputNanosPerMillion: 10n ** 9n,
});

async function everything(): Promise<unknown> {
  const paths = ["/accounts", "/webhooks", "/price_lists", "/operators", "/audit?limit=500"];
  const own = [`/accounts/${known.account}/entries`, `/accounts/${known.account}/keys`];
  const answers = await Promise.all(
    [...paths, ...own].map(async (path) => (await operators.ask(`/api/v1${path}`)).json["data"]),
  );
  // The minute in which the key was used comes by itself.
  return JSON.parse(JSON.stringify(answers).replaceAll(/"last_used_at":[^,}]+/g, '"used":0'));
}

const tooMuch = "10000000000000";
const grant = { amount: "1", every: "month" };
const prices = [{ input: "1", output: "1" }];
const manyAccounts = Array.from({ length: 501 }, (_, at) => `acct_${String(at)}`).join(",");

/** Method and path, with ids in braces; the body; status, code and field. */
const table: readonly (readonly [string, unknown, number, string, string | undefined])[] = [
  // Accounts, grants and metadata.
  ["POST /accounts", { name: "a", credit: tooMuch }, 400, "invalid_value", "credit"],
  ["POST /accounts", { name: "a", credit: "-1" }, 400, "invalid_value", "credit"],
  ["POST /accounts", { name: "a", credit: 1 }, 400, "invalid_value", "credit"],
  ["POST /accounts", { name: " " }, 400, "invalid_value", "name"],
  ["POST /accounts", { name: "a", external_id: "taken" }, 409, "not_possible", "external_id"],
  ["POST /accounts", { name: "a", external_id: "a\u0007" }, 400, "invalid_value", "external_id"],
  ["POST /accounts", { name: "a", price_list: "none" }, 404, "not_found", "price_list"],
  ["PATCH /accounts/{account}", { name: 7 }, 400, "invalid_value", "name"],
  ["PATCH /accounts/{account}", { color: "red" }, 400, "invalid_value", "color"],
  ["PATCH /accounts/{account}", [], 400, "invalid_value", undefined],
  ["PATCH /accounts/{account}", { status: "gone" }, 400, "invalid_value", "status"],
  ["PATCH /accounts/{account}", { low_balance_at: "-1" }, 400, "invalid_value", "low_balance_at"],
  [
    "PATCH /accounts/{account}",
    { low_balance_at: tooMuch },
    400,
    "invalid_value",
    "low_balance_at",
  ],
  [
    "PATCH /accounts/{account}",
    { limits: { concurrent_requests: 0 } },
    400,
    "invalid_value",
    "limits.concurrent_requests",
  ],
  ["PATCH /accounts/{account}", { limits: { speed: 1 } }, 400, "invalid_value", "limits.speed"],
  ["PATCH /accounts/{account}", { metadata: { a: 1 } }, 400, "invalid_value", "metadata.a"],
  [
    "PATCH /accounts/{account}",
    { metadata: { ["n".repeat(41)]: "x" } },
    400,
    "invalid_value",
    "metadata",
  ],
  [
    "PATCH /accounts/{account}",
    { metadata: { a: "v".repeat(501) } },
    400,
    "invalid_value",
    "metadata",
  ],
  [
    "PATCH /accounts/{account}",
    { grant: { ...grant, amount: "0" } },
    400,
    "invalid_value",
    "grant.amount",
  ],
  [
    "PATCH /accounts/{account}",
    { grant: { ...grant, amount: tooMuch } },
    400,
    "invalid_value",
    "grant.amount",
  ],
  [
    "PATCH /accounts/{account}",
    { grant: { ...grant, every: "year" } },
    400,
    "invalid_value",
    "grant.every",
  ],
  [
    "PATCH /accounts/{account}",
    { grant: { ...grant, timezone: "Mars/Base" } },
    400,
    "invalid_value",
    "grant.timezone",
  ],
  [
    "PATCH /accounts/{account}",
    { grant: { ...grant, timezone: "+01:00" } },
    400,
    "invalid_value",
    "grant.timezone",
  ],
  [
    "PATCH /accounts/{account}",
    { grant: { ...grant, carry_over: "yes" } },
    400,
    "invalid_value",
    "grant.carry_over",
  ],
  ["PATCH /accounts/{account}", { grant: { amount: "1" } }, 400, "invalid_value", "grant.every"],
  ["PATCH /accounts/{account}", { grant: { every: "day" } }, 400, "invalid_value", "grant.amount"],
  ["PATCH /accounts/acct_none", { name: "a" }, 404, "not_found", "id"],
  ["GET /accounts/acct_none", undefined, 404, "not_found", "id"],
  ["GET /accounts?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  ["GET /accounts?limit=0", undefined, 400, "invalid_value", "limit"],
  // Credit.
  ["POST /accounts/{account}/credits", { amount: "0" }, 400, "invalid_value", "amount"],
  ["POST /accounts/{account}/credits", { amount: tooMuch }, 400, "invalid_value", "amount"],
  ["POST /accounts/{account}/credits", { amount: "1e3" }, 400, "invalid_value", "amount"],
  ["POST /accounts/{account}/credits", { amount: "-100" }, 409, "not_possible", "amount"],
  ["POST /accounts/{account}/credits", { amount: "1", kind: "gift" }, 400, "invalid_value", "kind"],
  [
    "POST /accounts/{account}/credits",
    { amount: "1", note: "x".repeat(2_000) },
    400,
    "invalid_value",
    "note",
  ],
  [
    "POST /accounts/{account}/credits",
    { amount: "1", reference: "grant:2026-01-01" },
    400,
    "invalid_value",
    "reference",
  ],
  [
    "POST /accounts/{account}/credits",
    { amount: "1", kind: "refund", receipt: "req_none" },
    404,
    "not_found",
    "receipt",
  ],
  [
    "POST /accounts/{account}/credits",
    { amount: "1", kind: "refund", receipt: "{receipt}" },
    404,
    "not_found",
    "receipt",
  ],
  ["POST /accounts/acct_none/credits", { amount: "1" }, 404, "not_found", "id"],
  ["GET /accounts/{account}/entries?before=0", undefined, 400, "invalid_value", "before"],
  ["GET /accounts/{account}/entries?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  ["GET /accounts/acct_none/entries", undefined, 404, "not_found", "id"],
  ["GET /accounts/{account}/statements/2026-1", undefined, 400, "invalid_value", "month"],
  [
    "GET /accounts/{account}/statements/2026-01?format=pdf",
    undefined,
    400,
    "invalid_value",
    "format",
  ],
  ["GET /accounts/acct_none/statements/2026-01", undefined, 404, "not_found", "id"],
  // Keys and budgets.
  ["POST /accounts/acct_none/keys", {}, 404, "not_found", "id"],
  ["POST /accounts/{account}/keys", { scopes: [] }, 400, "invalid_value", "scopes"],
  ["POST /accounts/{account}/keys", { name: "" }, 400, "invalid_value", "name"],
  ["PATCH /keys/key_none", { name: "a" }, 404, "not_found", "id"],
  ["PATCH /keys/{key}", { expires_at: "soon" }, 400, "invalid_value", "expires_at"],
  [
    "PATCH /keys/{key}",
    { budget: { amount: "-1", period: "day" } },
    400,
    "invalid_value",
    "budget.amount",
  ],
  [
    "PATCH /keys/{key}",
    { budget: { amount: tooMuch, period: "day" } },
    400,
    "invalid_value",
    "budget.amount",
  ],
  [
    "PATCH /keys/{key}",
    { budget: { amount: "1", period: "year" } },
    400,
    "invalid_value",
    "budget.period",
  ],
  ["PATCH /keys/{key}", { budget: { amount: "1" } }, 400, "invalid_value", "budget.period"],
  [
    "PATCH /keys/{key}",
    { budget: { amount: "1", period: "day", timezone: "Berlin" } },
    400,
    "invalid_value",
    "budget.timezone",
  ],
  ["POST /keys/{key}/rotate", { overlap_seconds: -1 }, 400, "invalid_value", "overlap_seconds"],
  ["POST /keys/key_none/rotate", {}, 404, "not_found", "id"],
  ["DELETE /keys/key_none", undefined, 404, "not_found", "id"],
  ["GET /keys/key_none", undefined, 404, "not_found", "id"],
  ["GET /keys?prefix=x", undefined, 400, "invalid_value", "prefix"],
  // Price lists.
  ["POST /price_lists", { name: "default", prices }, 409, "not_possible", "name"],
  ["POST /price_lists", { name: "", prices }, 400, "invalid_value", "name"],
  ["POST /price_lists", { name: "x", prices: [] }, 400, "invalid_value", "prices"],
  [
    "POST /price_lists",
    { name: "x", prices: [{ input: "-1", output: "1" }] },
    400,
    "invalid_value",
    "prices.0.input",
  ],
  [
    "POST /price_lists",
    { name: "x", prices: [{ input: "1" }] },
    400,
    "invalid_value",
    "prices.0.output",
  ],
  [
    "POST /price_lists",
    { name: "x", prices: [{ ...prices[0], from: "x" }] },
    400,
    "invalid_value",
    "prices.0.from",
  ],
  [
    "PATCH /price_lists/default",
    { prices: [{ ...prices[0], effective_from: "2020-01-01T00:00:00Z" }] },
    409,
    "not_possible",
    "prices",
  ],
  [
    "PATCH /price_lists/default",
    { prices: [{ ...prices[0], effective_from: "soon" }] },
    400,
    "invalid_value",
    "prices.0.effective_from",
  ],
  ["PATCH /price_lists/none", { prices }, 404, "not_found", "name"],
  ["GET /price_lists/none", undefined, 404, "not_found", "name"],
  ["GET /price_lists?cursor=%25", undefined, 400, "invalid_cursor", "cursor"],
  // Usage and receipts.
  ["GET /usage?by=year", undefined, 400, "invalid_value", "by"],
  ["GET /usage?by=day,hour", undefined, 400, "invalid_value", "by"],
  ["GET /usage?timezone=Mars", undefined, 400, "invalid_value", "timezone"],
  ["GET /usage?since=2026-13-01T00:00:00Z", undefined, 400, "invalid_value", "since"],
  ["GET /usage?account=acct_none", undefined, 404, "not_found", "account"],
  ["GET /usage?account=acct_none,acct_none2", undefined, 404, "not_found", "account"],
  [`GET /usage?account=${manyAccounts}`, undefined, 400, "invalid_value", "account"],
  ["GET /usage?color=red", undefined, 400, "invalid_value", "color"],
  ["GET /receipts?charged_at_least=much", undefined, 400, "invalid_value", "charged_at_least"],
  ["GET /receipts?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  ["GET /receipts/req_none", undefined, 404, "not_found", "id"],
  ["DELETE /generations/req_none", undefined, 404, "not_found", "request_id"],
  ["GET /generations?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  // Webhooks and events.
  ["POST /webhooks", { url: "https://169.254.169.254/" }, 400, "invalid_value", "url"],
  ["POST /webhooks", { url: "https://[fd00::1]/" }, 400, "invalid_value", "url"],
  ["POST /webhooks", { url: "https://a.localhost./" }, 400, "invalid_value", "url"],
  ["POST /webhooks", { url: "file:///etc/passwd" }, 400, "invalid_value", "url"],
  ["PATCH /webhooks/{hook}", { url: "https://127.1/" }, 400, "invalid_value", "url"],
  ["PATCH /webhooks/{hook}", { types: ["account.gone"] }, 400, "invalid_value", "types.0"],
  ["PATCH /webhooks/hook_none", { status: "paused" }, 404, "not_found", "id"],
  ["DELETE /webhooks/hook_none", undefined, 404, "not_found", "id"],
  ["POST /webhooks/hook_none/test", undefined, 404, "not_found", "id"],
  ["POST /webhooks/{hook}/deliveries/evt_none/resend", undefined, 404, "not_found", "event"],
  ["GET /webhooks/{hook}/deliveries?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  ["GET /events?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  // Operators, sessions and what the service is.
  ["POST /operators", { name: "x", role: "king" }, 400, "invalid_value", "role"],
  [
    "POST /operators",
    { name: "x", role: "viewer", expires_at: "2020-01-01T00:00:00Z" },
    400,
    "invalid_value",
    "expires_at",
  ],
  ["DELETE /operators/oper_none", undefined, 404, "not_found", "id"],
  ["POST /replicas/none/drain", undefined, 404, "not_found", "id"],
  ["GET /audit?since=yesterday", undefined, 400, "invalid_value", "since"],
  ["GET /refusals?cursor=x", undefined, 400, "invalid_cursor", "cursor"],
  ["POST /session", {}, 400, "invalid_value", undefined],
  ["POST /session", { token: 7 }, 400, "invalid_value", "token"],
];

const filled = (text: string): string =>
  text.replaceAll(/\{(\w+)\}/g, (_all, name: keyof typeof known) => known[name]);

describe("what is wrong is named", () => {
  test.each(table)("%s with %j", async (route, body, status, code, param) => {
    const [method = "", path = ""] = filled(route).split(" ");
    const sent = body === undefined ? undefined : filled(JSON.stringify(body));
    const answer = await operators.ask(`/api/v1${path}`, { method, body: sent });
    expect([answer.status, answer.json["code"], answer.json["param"]]).toEqual([
      status,
      code,
      param,
    ]);
    expect(answer.type).toBe("application/problem+json");
    expect(answer.json["request_id"]).toMatch(/^req_/);
    // What is wrong, and what to do.
    expect(String(answer.json["detail"])).toMatch(/\.$/);
    expect(String(answer.json["detail"]).length).toBeGreaterThan(20);
    expect(answer.json["detail"]).not.toContain("undefined");
    expect(operators.failures).toEqual([]);
  });

  test("nothing of it was done, and no row of the log says that it was", async () => {
    expect(await everything()).toEqual(before);
  });
});

test("a token that has expired is answered 401 and says what to do", async () => {
  nowMs += 2_000;
  const answer = await operators.ask("/api/v1/accounts", { token: known.expired });
  expect(answer).toMatchObject({ status: 401, json: { code: "token_unknown" } });
  expect(answer.json["detail"]).toContain("has expired");
  expect(answer.headers.get("www-authenticate")).toBe("Bearer");
});

test("an idempotency-key that is used again for something else is said, and nothing is done", async () => {
  const headers = { "idempotency-key": "once" };
  const path = `/api/v1/accounts/${known.account}/credits`;
  const first = await operators.ask(path, { body: { amount: "1" }, headers });
  expect(first.status).toBe(200);
  const second = await operators.ask(path, { body: { amount: "2" }, headers });
  expect(second).toMatchObject({
    status: 409,
    json: { code: "idempotency_conflict", param: "idempotency-key" },
  });
  expect((await operators.ask(`/api/v1/accounts/${known.account}`)).json).toMatchObject({
    balance: "6",
  });
});
