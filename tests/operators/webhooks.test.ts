import { afterAll, beforeAll, expect, test } from "vitest";
import { startOperators, type TestOperators } from "./start-operators.ts";

let operators: TestOperators;
beforeAll(async () => {
  operators = await startOperators();
});
afterAll(() => operators[Symbol.asyncDispose]());

const url = "https://shop.example/tributary";

function ask(path: string, body?: unknown, method?: string, key?: string) {
  return operators.ask(`/api/v1${path}`, {
    ...(body === undefined ? {} : { body }),
    ...(method === undefined ? {} : { method }),
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
  });
}

async function makeWebhook(body: object = { url }): Promise<string> {
  return String((await ask("/webhooks", body)).json["id"]);
}

test("a webhook is made, shown without its secret, changed and taken away", async () => {
  const made = await ask("/webhooks", { url, types: ["account.low_balance"] });
  expect(made).toMatchObject({
    status: 200,
    json: {
      url,
      description: "",
      types: ["account.low_balance"],
      status: "active",
      failing_since: null,
      old_secret_until: null,
      version: 1,
      secret: expect.stringMatching(/^whsec_[0-9A-Za-z+/]{43}=$/) as string,
      secret_shown: false,
    },
  });
  const { id, secret, secret_shown: _shown, ...record } = made.json;
  expect((await ask(`/webhooks/${String(id)}`)).json).toEqual({ id, ...record });
  const changed = await ask(`/webhooks/${String(id)}`, { types: null, status: "paused" }, "PATCH");
  expect(changed.json).toEqual({ id, ...record, types: null, status: "paused", version: 2 });
  const list = await ask("/webhooks");
  expect(list.json).toEqual({ data: [changed.json], next_cursor: null });
  expect((await ask(`/webhooks/${String(id)}`, undefined, "DELETE")).json).toEqual(changed.json);
  expect(await ask(`/webhooks/${String(id)}`)).toMatchObject({ status: 404 });
  expect((await ask("/webhooks")).json["data"]).toEqual([]);
  const audit = await ask(`/audit?target=${String(id)}`);
  const rows = audit.json["data"] as { action: string }[];
  expect(rows.map(({ action }) => action)).toEqual([
    "webhook.delete",
    "webhook.change",
    "webhook.create",
  ]);
  expect(JSON.stringify(audit.json)).not.toContain(String(secret).slice(6, 20));
});

test("a repeat under one key makes one webhook and shows no secret again", async () => {
  const first = await ask("/webhooks", { url }, "POST", "make-one");
  const again = await ask("/webhooks", { url }, "POST", "make-one");
  expect(again.json).toEqual({ ...first.json, secret: null, secret_shown: true });
  const path = `/webhooks/${String(first.json["id"])}`;
  const rotated = await ask(`${path}/rotate`, { overlap_seconds: 60 }, "POST", "rotate-one");
  expect(rotated.json["secret"]).not.toBe(first.json["secret"]);
  expect(rotated.json["old_secret_until"]).not.toBeNull();
  const repeated = await ask(`${path}/rotate`, { overlap_seconds: 60 }, "POST", "rotate-one");
  expect(repeated.json).toEqual({ ...rotated.json, secret: null, secret_shown: true });
  const sent = await ask(`${path}/test`, undefined, "POST", "test-one");
  const sentAgain = await ask(`${path}/test`, undefined, "POST", "test-one");
  expect(sentAgain.json).toEqual(sent.json);
  await ask(path, undefined, "DELETE");
});

test("a change of a webhook that is repeated under one key happens once", async () => {
  const path = `/webhooks/${await makeWebhook()}`;
  const change = { status: "paused", description: "of the shop" };
  const first = await ask(path, change, "PATCH", "pause-one");
  expect(first).toMatchObject({ status: 200, json: { ...change, version: 2 } });
  const again = await ask(path, change, "PATCH", "pause-one");
  expect([again.status, again.json]).toEqual([200, first.json]);
  expect((await ask(path)).json).toEqual(first.json);
  await ask(path, undefined, "DELETE", "delete-one");
});

test("a test is queued, and shown among the deliveries; nothing else has happened", async () => {
  const id = await makeWebhook();
  const sent = await ask(`/webhooks/${id}/test`, undefined, "POST");
  expect(sent).toMatchObject({
    status: 202,
    json: {
      state: "pending",
      tries: 0,
      event: { type: "webhook.test", data: { webhook: id } },
      status_code: null,
    },
  });
  const { id: event } = sent.json["event"] as { id: string };
  expect((await ask(`/webhooks/${id}/deliveries`)).json["data"]).toEqual([sent.json]);
  expect((await ask(`/webhooks/${id}/deliveries?state=failed`)).json["data"]).toEqual([]);
  const again = await ask(`/webhooks/${id}/deliveries/${event}/resend`, undefined, "POST");
  expect(again).toMatchObject({ status: 202, json: { state: "pending", event: { id: event } } });
  await ask(`/webhooks/${id}`, { status: "paused" }, "PATCH");
  for (const path of ["test", `deliveries/${event}/resend`])
    expect(await ask(`/webhooks/${id}/${path}`, undefined, "POST")).toMatchObject({
      status: 409,
      json: { code: "not_possible" },
    });
  await ask(`/webhooks/${id}`, undefined, "DELETE");
});

test("events are read from one cursor to the next, and none is missed", async () => {
  const { ledger } = operators;
  const before = await ask("/events");
  const shop = await ledger.createAccount("shop", 1n);
  for (let count = 0; count < 4; count += 1) await ledger.creditAccount(shop.id, 1n, null);
  await ledger.takeDesk("test");
  const seen: unknown[] = [];
  let cursor = String(before.json["next_cursor"]);
  for (;;) {
    const page = await ask(`/events?limit=2&cursor=${cursor}&account=${shop.id}`);
    const data = page.json["data"] as { data: { entry: number } }[];
    seen.push(...data.map(({ data: { entry } }) => entry));
    if (data.length === 0) {
      expect(page.json["next_cursor"], "to ask again with").toBe(cursor);
      break;
    }
    cursor = String(page.json["next_cursor"]);
  }
  expect(seen).toEqual([1, 2, 3, 4, 5]);
  await ledger.creditAccount(shop.id, 1n, null);
  await ledger.takeDesk("test");
  expect((await ask(`/events?cursor=${cursor}`)).json["data"]).toMatchObject([
    { type: "account.credited", data: { entry: 6 } },
  ]);
  expect((await ask("/events?type=verify.failed")).json["data"]).toEqual([]);
});

test.each([
  ["POST", "/webhooks", {}, "url"],
  ["POST", "/webhooks", { url: "shop.example" }, "url"],
  ["POST", "/webhooks", { url: "https://10.0.0.1/" }, "url"],
  ["POST", "/webhooks", { url: "https://2130706433/" }, "url"],
  ["POST", "/webhooks", { url: "https://[::ffff:127.0.0.1]/" }, "url"],
  ["POST", "/webhooks", { url: "https://localhost/" }, "url"],
  ["POST", "/webhooks", { url: "http://shop.example/" }, "url"],
  ["POST", "/webhooks", { url: "https://ann:pw@shop.example/" }, "url"],
  ["POST", "/webhooks", { url: `https://shop.example/${"a".repeat(2_048)}` }, "url"],
  ["POST", "/webhooks", { url, types: ["account.gone"] }, "types.0"],
  ["POST", "/webhooks", { url, types: [] }, "types"],
  ["POST", "/webhooks", { url, secret: "whsec_mine" }, "secret"],
  ["POST", "/webhooks", { url, status: "deleted" }, "status"],
  ["POST", "/webhooks/hook_none/rotate", { overlap_seconds: 2_592_001 }, "overlap_seconds"],
  ["PATCH", "/webhooks/hook_none", { url: "https://127.0.0.1/" }, "url"],
  ["GET", "/events?type=webhook.test", undefined, "type"],
  ["GET", "/webhooks/hook_none/deliveries?state=gone", undefined, "state"],
])("%s %s with %j names the field", async (method, path, body, param) => {
  const refused = await ask(path, body, method);
  expect(refused).toMatchObject({ status: 400, json: { param } });
  expect(String(refused.json["detail"])).toContain(`\`${param}\``);
});

test.each([
  ["GET", "/webhooks/hook_none", undefined],
  ["PATCH", "/webhooks/hook_none", { status: "active" }],
  ["DELETE", "/webhooks/hook_none", undefined],
  ["POST", "/webhooks/hook_none/rotate", {}],
  ["POST", "/webhooks/hook_none/test", undefined],
  ["GET", "/webhooks/hook_none/deliveries", undefined],
  ["POST", "/webhooks/hook_none/deliveries/evt_none/resend", undefined],
])("%s %s is not found", async (method, path, body) => {
  expect(await ask(path, body, method)).toMatchObject({ status: 404, json: { code: "not_found" } });
});

test("a cursor is one that was answered", async () => {
  expect(await ask("/events?cursor=***")).toMatchObject({
    status: 400,
    json: { code: "invalid_cursor" },
  });
});

test("a service has 32 webhooks at most", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 32; count += 1) ids.push(await makeWebhook());
  expect(await ask("/webhooks", { url })).toMatchObject({
    status: 409,
    json: { code: "not_possible" },
  });
  for (const id of ids) await ask(`/webhooks/${id}`, undefined, "DELETE");
  expect((await ask("/webhooks")).json["data"]).toEqual([]);
});
