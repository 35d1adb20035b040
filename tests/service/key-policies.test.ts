import { afterAll, beforeAll, expect, describe, it } from "vitest";
import type { KeyPatch } from "../../src/ledger/administration/key-administration.ts";
import { expectRefusal, shapeOf } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";

// What a key may do, as its caller meets it in each format.

let service: TestService;
beforeAll(async () => (service = await startService()));
afterAll(() => service[Symbol.asyncDispose]());

const [, , messages] = formats;
const counting = { name: "count_tokens", path: "/v1/messages/count_tokens", body: messages.body };
const past = Date.UTC(2020, 0, 1);

async function keyWith(patch: KeyPatch): Promise<{ key: string; accountId: string; id: string }> {
  const { accountId, key } = await service.newKey("10");
  const [record] = await service.ledger.listKeys(accountId);
  const id = record?.id ?? "";
  await service.ledger.changeKey(id, patch);
  return { key, accountId, id };
}

function look(path: string, key: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(service.url + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
}

describe.each([
  {
    code: "key_expired",
    patch: { expiresAtMs: past },
    says: /has expired. Ask the operator of this service for another one/,
  },
  {
    code: "key_paused",
    patch: { status: "paused" },
    says: /is paused. Ask the operator of this service to resume it/,
  },
] as const)("a key that is answered $code", ({ code, patch, says }) => {
  it.each([...formats, counting])("by $path", async ({ body, path }) => {
    const { accountId, id, key } = await keyWith(patch);
    const sent = service.deployment.requests.length;
    await expectRefusal(await service.post(path, body, { key }), {
      code,
      shape: shapeOf(path),
      says,
    });
    expect(service.deployment.requests.length).toBe(sent);
    await service.ledger.changeKey(id, { status: "active", expiresAtMs: null });
    expect((await service.post(path, body, { key })).status).toBe(200);
    await service.settledCredit(accountId);
  });

  it("by a look at its account, in both shapes", async () => {
    const { key } = await keyWith(patch);
    for (const path of ["/account", "/receipts/req_x"]) {
      await expectRefusal(await look(path, key), { code, shape: "openai", says });
      const asMessages = { "anthropic-version": "2023-06-01" };
      await expectRefusal(await look(path, key, asMessages), { code, shape: "messages", says });
    }
  });
});

describe("a key that may read alone", () => {
  it.each(formats)("spends nothing by $path", async ({ body, path }) => {
    const { key } = await keyWith({ scopes: ["read"] });
    const says = /may look at its account and not spend: it does not have the scope `generate`/;
    const answer = await service.post(path, body, { key });
    await expectRefusal(answer, { code: "key_scope", shape: shapeOf(path), says });
  });

  it("looks at its account and counts tokens", async () => {
    const { key } = await keyWith({ scopes: ["read"] });
    expect((await look("/account", key)).status).toBe(200);
    expect((await look("/receipts/req_x", key)).status).toBe(404);
    expect((await service.post(counting.path, counting.body, { key })).status).toBe(200);
  });
});

it("a key that may generate alone does not look", async () => {
  const { accountId, key } = await keyWith({ scopes: ["generate"] });
  const [{ body, path }] = formats;
  expect((await service.post(path, body, { key })).status).toBe(200);
  await service.settledCredit(accountId);
  const says = /may spend and not look at its account: it does not have the scope `read`/;
  for (const one of ["/account", "/receipts/req_x"])
    await expectRefusal(await look(one, key), { code: "key_scope", shape: "openai", says });
});

it.each(formats)(
  "an allowance above the limit is cut to it, and sent so: $path",
  async (format) => {
    const { accountId, key } = await keyWith({ limits: { outputTokensMax: 12 } });
    const { body, path } = format;
    const answer = await service.post(path, body, { key });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-tributary-output-allowance")).toBe("12");
    await answer.text();
    await service.settledCredit(accountId);
  },
);

it("the limits in force are those that the headers and /account show", async () => {
  const { accountId, key } = await keyWith({
    limits: { outputTokensMax: 12, requestsPerMinute: 3 },
  });
  await service.ledger.changeAccount(accountId, { limits: { concurrentRequests: 9 } });
  const answer = await service.post(counting.path, counting.body, { key });
  expect(answer.headers.get("anthropic-ratelimit-requests-limit")).toBe("3");
  const account = (await (await look("/account", key)).json()) as Record<string, unknown>;
  expect(account["limits"]).toMatchObject({
    concurrent_requests: 9,
    requests_per_minute: 3,
    requests_remaining: 2,
    output_allowance_default: 12,
    output_allowance_max: 12,
  });
});

it("a refusal names its key to operators where the key is a right one, and a guess names none", async () => {
  const { ledger } = service;
  const poor = await service.newKey("0");
  const revoked = await keyWith({});
  await ledger.revokeKey(revoked.id);
  const replaced = await keyWith({});
  await ledger.rotateKey(replaced.id, 0);
  const disabled = await keyWith({});
  await ledger.changeAccount(disabled.accountId, { status: "disabled" });
  const limited = await keyWith({ limits: { requestsPerMinute: 1 } });
  const [{ body, path }] = formats;
  expect((await service.post(path, body, { key: limited.key })).status).toBe(200);
  const [record] = await ledger.listKeys(poor.accountId);
  const asked = [
    { ...poor, id: record?.id, code: "insufficient_credit" },
    { ...revoked, code: "authentication" },
    { ...replaced, code: "authentication" },
    { ...disabled, code: "account_disabled" },
    { ...limited, code: "rate_limited" },
    { ...(await keyWith({ expiresAtMs: past })), code: "key_expired" },
    { ...(await keyWith({ status: "paused" })), code: "key_paused" },
    { ...(await keyWith({ scopes: ["read"] })), code: "key_scope" },
    // The id of a key with a secret that is not its own.
    {
      key: poor.key.slice(0, -1) + (poor.key.endsWith("a") ? "b" : "a"),
      id: null,
      code: "authentication",
    },
    { key: "trib_no_key", id: null, code: "authentication" },
  ];
  for (const { code, id, key } of asked) {
    const answer = await service.post(path, body, { key });
    const request = answer.headers.get("x-request-id");
    await answer.text();
    await expect
      .poll(async () => (await service.gateway.refusals()).find((one) => one.requestId === request))
      .toMatchObject({ code, keyId: id });
  }
});
