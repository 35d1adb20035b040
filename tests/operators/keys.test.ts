import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startOperators, type TestOperators } from "./start-operators.ts";

// Keys as a program of an operator sets them: scopes, expiry, limits, pause and rotation.

let operators: TestOperators;
beforeAll(async () => (operators = await startOperators()));
afterAll(() => operators[Symbol.asyncDispose]());

type Json = Record<string, unknown>;

async function makeKey(body: Json = {}): Promise<{ path: string; account: string; made: Json }> {
  const { json } = await operators.ask("/api/v1/accounts", { body: { name: "team" } });
  const account = `/api/v1/accounts/${String(json["id"])}`;
  const { json: made } = await operators.ask(`${account}/keys`, { body });
  return { path: `/api/v1/keys/${String(made["id"])}`, account, made };
}

async function changesOf(path: string): Promise<unknown> {
  const target = path.slice(path.lastIndexOf("/") + 1);
  const { json } = await operators.ask(`/api/v1/audit?target=${target}`);
  return (json["data"] as Json[]).map(({ action, after, before }) => ({ action, before, after }));
}

test("a key is made with what it may do", async () => {
  const { made } = await makeKey({
    scopes: ["read"],
    expires_at: "2099-01-01T01:00:00+01:00",
    limits: { requests_per_minute: 5 },
  });
  expect(made).toMatchObject({
    name: "key",
    scopes: ["read"],
    status: "active",
    expires_at: "2099-01-01T00:00:00.000Z",
    limits: { requests_per_minute: 5, output_tokens_max: null },
    last_used_at: null,
    previous_secret_until: null,
  });
  expect(String(made["secret"]).startsWith(`${String(made["prefix"])}_`)).toBe(true);
  expect((await makeKey()).made).toMatchObject({
    scopes: ["generate", "read"],
    expires_at: null,
    limits: { requests_per_minute: null, output_tokens_max: null },
  });
});

test("a patch of a key changes what it names, null takes away, and the log has what changed", async () => {
  const { path } = await makeKey({ limits: { requests_per_minute: 5, output_tokens_max: 7 } });
  const patch = async (body: Json): Promise<Json> =>
    (await operators.ask(path, { method: "PATCH", body })).json;
  expect(await patch({ status: "paused" })).toMatchObject({
    status: "paused",
    limits: { requests_per_minute: 5, output_tokens_max: 7 },
  });
  const changed = await patch({
    name: "web",
    scopes: ["generate"],
    expires_at: "2099-01-01T00:00:00Z",
    limits: { requests_per_minute: null },
  });
  expect(changed).toMatchObject({
    name: "web",
    status: "paused",
    scopes: ["generate"],
    limits: { requests_per_minute: null, output_tokens_max: 7 },
  });
  expect((await operators.ask(path)).json).toEqual(changed);
  expect(await patch({ status: "active", expires_at: null })).toMatchObject({ expires_at: null });
  expect(await patch({})).toMatchObject({ name: "web", status: "active" });
  expect(await changesOf(path)).toEqual([
    {
      action: "key.resume",
      before: { status: "paused", expires_at: "2099-01-01T00:00:00.000Z" },
      after: { status: "active", expires_at: null },
    },
    {
      action: "key.change",
      before: {
        name: "key",
        scopes: "generate read",
        expires_at: null,
        requests_per_minute: 5,
      },
      after: {
        name: "web",
        scopes: "generate",
        expires_at: "2099-01-01T00:00:00.000Z",
        requests_per_minute: null,
      },
    },
    { action: "key.pause", before: { status: "active" }, after: { status: "paused" } },
    expect.objectContaining({ action: "key.create", before: null }),
  ]);
});

test("limits of an account are changed one by one", async () => {
  const { account } = await makeKey();
  const patch = async (limits: Json): Promise<unknown> =>
    (await operators.ask(account, { method: "PATCH", body: { limits } })).json["limits"];
  const first = { concurrent_requests: 100, requests_per_minute: 10_000, output_tokens_max: 50 };
  expect(await patch(first)).toEqual(first);
  expect(await patch({ requests_per_minute: null })).toEqual({
    ...first,
    requests_per_minute: null,
  });
  expect((await operators.ask(account)).json["limits"]).toMatchObject({ output_tokens_max: 50 });
  expect(await changesOf(account)).toMatchObject([
    {
      action: "account.change",
      before: { requests_per_minute: 10_000 },
      after: { requests_per_minute: null },
    },
    { action: "account.change", after: first },
    { action: "account.create" },
  ]);
});

test("a rotation gives a new secret once, and the beginning of the old one finds the key", async () => {
  const { made, path } = await makeKey({ name: "web" });
  const init = {
    body: { overlap_seconds: 3_600 },
    headers: { "idempotency-key": "rotate-one" },
  };
  const { json: rotated } = await operators.ask(`${path}/rotate`, init);
  expect(rotated).toMatchObject({ id: made["id"], name: "web", secret_shown: false });
  expect(rotated["secret"]).not.toBe(made["secret"]);
  expect(Date.parse(String(rotated["previous_secret_until"]))).toBeGreaterThan(Date.now());
  const { json: again } = await operators.ask(`${path}/rotate`, init);
  expect(again).toEqual({ ...rotated, secret: null, secret_shown: true });
  for (const beginning of [
    String(made["secret"]).slice(0, -30),
    String(made["prefix"]).slice(0, -3),
  ]) {
    const found = await operators.ask(`/api/v1/keys?prefix=${beginning}`);
    expect(found.json["data"]).toMatchObject([{ id: made["id"] }]);
  }
  const without = await operators.ask(`${path}/rotate`, { method: "POST" });
  expect(without).toMatchObject({ status: 200, json: { secret_shown: false } });
});

describe("what a key cannot be is refused by name", () => {
  test.each([
    ["no scope", { scopes: [] }, "scopes"],
    ["another scope", { scopes: ["write"] }, "scopes.0"],
    ["no requests", { limits: { requests_per_minute: 0 } }, "limits.requests_per_minute"],
    ["a part of a token", { limits: { output_tokens_max: 1.5 } }, "limits.output_tokens_max"],
    ["more than any answer", { limits: { output_tokens_max: 65_537 } }, "limits.output_tokens_max"],
    ["an account's limit", { limits: { concurrent_requests: 1 } }, "limits.concurrent_requests"],
    ["no limits", { limits: null }, "limits"],
    ["another status", { status: "revoked" }, "status"],
    ["no time", { expires_at: "tomorrow" }, "expires_at"],
    ["no name", { name: null }, "name"],
  ])("%s", async (_name, body, param) => {
    const { path } = await makeKey();
    const before = (await operators.ask(path)).json;
    const answer = await operators.ask(path, { method: "PATCH", body });
    expect(answer).toMatchObject({ status: 400, json: { code: "invalid_value", param } });
    expect((await operators.ask(path)).json).toEqual(before);
  });

  test("a new key that has expired", async () => {
    const { account } = await makeKey();
    const body = { expires_at: "2020-01-01T00:00:00Z" };
    const answer = await operators.ask(`${account}/keys`, { body });
    expect(answer).toMatchObject({ status: 400, json: { code: "invalid_value" } });
    expect((await operators.ask(`${account}/keys`)).json["data"]).toHaveLength(1);
  });

  test.each([-1, 0.5, 2_592_001])("an overlap of %d seconds", async (seconds) => {
    const { path } = await makeKey();
    const answer = await operators.ask(`${path}/rotate`, { body: { overlap_seconds: seconds } });
    expect(answer).toMatchObject({ status: 400, json: { param: "overlap_seconds" } });
  });

  test("a change of a key that was revoked, and of none", async () => {
    const { path } = await makeKey();
    await operators.ask(path, { method: "DELETE" });
    for (const ask of [
      () => operators.ask(path, { method: "PATCH", body: { status: "active" } }),
      () => operators.ask(`${path}/rotate`, { body: {} }),
    ])
      expect(await ask()).toMatchObject({ status: 409, json: { code: "not_possible" } });
    for (const ask of [
      () => operators.ask("/api/v1/keys/key_x", { method: "PATCH", body: {} }),
      () => operators.ask("/api/v1/keys/key_x/rotate", { body: {} }),
    ])
      expect(await ask()).toMatchObject({ status: 404, json: { code: "not_found" } });
  });
});
