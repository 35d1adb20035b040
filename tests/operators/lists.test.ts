import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { operatorsDocumentOfTests } from "./check-operator-answer.ts";
import { startOperators, type TestOperators } from "./start-operators.ts";

// What all lists and all changes have in common, by the document and by what is answered.

type Json = Readonly<Record<string, unknown>>;
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
}

const operations = Object.entries(operatorsDocumentOfTests.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    route: `${method.toUpperCase()} ${path}`,
    method,
    ...(operation as unknown as Operation),
  })),
);
const namesOf = ({ parameters = [] }: Operation): readonly string[] =>
  parameters.map(({ in: place, name }) => `${place} ${name}`);

describe("the document", () => {
  test.each(operations.filter(({ operationId }) => /^(?:list|find)/.test(operationId)))(
    "$route comes in pages",
    (operation) => {
      // Settings are all there are.
      if (operation.operationId === "listSettings") return;
      expect(namesOf(operation)).toEqual(expect.arrayContaining(["query limit", "query cursor"]));
    },
  );

  test.each(operations.filter(({ method }) => method === "patch"))(
    "$route takes the version that it was made for",
    (operation) => expect(namesOf(operation)).toContain("header if-match"),
  );

  test("says of every change that it may be sent again", () => {
    const without = operations
      .filter((one) => one.method !== "get" && !namesOf(one).includes("header idempotency-key"))
      .map(({ operationId }) => operationId);
    expect(new Set(without)).toEqual(
      new Set(["openSession", "endSession", "verify", "rotateSealKey"]),
    );
  });
});

let operators: TestOperators;
beforeAll(async () => {
  // What is made within one millisecond would come in the order of its random ids.
  let nowMs = Date.now();
  operators = await startOperators({ now: () => (nowMs += 1) });
});
afterAll(() => operators[Symbol.asyncDispose]());

async function pagesOf(path: string, between: () => Promise<unknown>): Promise<readonly Json[]> {
  const rows: Json[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const query = `limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const { json, status } = await operators.ask(
      `${path}${path.includes("?") ? "&" : "?"}${query}`,
    );
    expect(status).toBe(200);
    rows.push(...(json["data"] as Json[]));
    cursor = json["next_cursor"] as string | null;
    await between();
  }
  return rows;
}

test("keys, operators and webhooks come oldest first in pages that nothing moves", async () => {
  const { ledger } = operators;
  const { id } = await ledger.createAccount("shop", 0n);
  for (const name of ["a", "b", "c"]) await ledger.createKey(id, name);
  const keys = await pagesOf(`/api/v1/accounts/${id}/keys`, async () => {
    const [first] = await ledger.listKeys(id);
    await ledger.revokeKey(first?.id ?? "");
  });
  expect(keys.map(({ name }) => name)).toEqual(["a", "b", "c"]);
  const [{ prefix } = {}] = keys;
  const byPrefix = await pagesOf(`/api/v1/keys?prefix=${String(prefix).slice(0, -4)}`, () =>
    Promise.resolve(),
  );
  expect(byPrefix).toMatchObject([{ name: "a" }]);

  for (const role of ["viewer", "billing"] as const) await operators.newToken(role);
  const roles = (await pagesOf("/api/v1/operators", () => Promise.resolve())).map(
    ({ role }) => role,
  );
  expect(roles).toEqual(["owner", "viewer", "billing"]);

  const hook = { url: "https://shop.example/", types: null, status: "active" } as const;
  for (const description of ["one", "two", "three"])
    await ledger.createWebhook({ ...hook, description });
  const webhooks = await pagesOf("/api/v1/webhooks", async () => {
    const [first] = await ledger.listWebhooks();
    if (first !== undefined) await ledger.deleteWebhook(first.id);
  });
  expect(webhooks.map(({ description }) => description)).toEqual(["one", "two", "three"]);
  const wrong = await operators.ask("/api/v1/operators?cursor=x");
  expect(wrong).toMatchObject({ status: 400, json: { code: "invalid_cursor", param: "cursor" } });
});

test("a webhook that changed since it was read is left alone by changes for its old version", async () => {
  const body = { url: "https://shop.example/" };
  const { json: made } = await operators.ask("/api/v1/webhooks", { body });
  const path = `/api/v1/webhooks/${String(made["id"])}`;
  const paused = { method: "PATCH", body: { status: "paused" } };
  const headers = { "if-match": '"1"' };
  expect(await operators.ask(path, { ...paused, headers })).toMatchObject({
    status: 200,
    json: { version: 2 },
  });
  for (const change of [{ method: "PATCH", body: { status: "active" } }, { method: "DELETE" }]) {
    const refused = await operators.ask(path, { ...change, headers });
    expect(refused).toMatchObject({
      status: 412,
      json: { code: "version_conflict", param: "if-match" },
    });
  }
  const rotated = await operators.ask(`${path}/rotate`, { body: {}, headers });
  expect(rotated.status).toBe(412);
  expect((await operators.ask(path)).json).toMatchObject({ status: "paused", version: 2 });
  const removed = await operators.ask(path, { method: "DELETE", headers: { "if-match": "2" } });
  expect(removed.status).toBe(200);
});

test("status names the webhooks that fail, until a delivery comes through", async () => {
  let nowMs = Date.UTC(2026, 10, 22);
  await using own = await startOperators({ now: () => nowMs });
  const { ledger } = own;
  const settings = { url: "https://shop.example/", description: "shop", types: null };
  const { record } = await ledger.createWebhook({ ...settings, status: "active" });
  const failing = async (): Promise<unknown> =>
    (await own.ask("/api/v1/status")).json["failing_webhooks"];
  expect(await failing()).toEqual([]);
  await ledger.testWebhook(record.id);
  const attempt = async (delivered: boolean): Promise<void> => {
    const work = await ledger.takeDesk("test");
    for (const { event, tries, webhookId } of work?.due ?? [])
      await ledger.finishTry({
        webhookId,
        position: event.position,
        tries,
        delivered,
        statusCode: delivered ? 200 : 500,
        error: null,
        durationMs: 1,
      });
  };
  for (let tries = 0; tries < 10; tries += 1) {
    await attempt(false);
    nowMs += 86_400_000;
  }
  expect(await failing()).toMatchObject([{ id: record.id, description: "shop" }]);
  await ledger.testWebhook(record.id);
  await attempt(true);
  expect(await failing()).toEqual([]);
});

test("receipts that were charged more than an account can hold are none, and no fault", async () => {
  const { json, status } = await operators.ask("/api/v1/receipts?charged_at_least=999999999999999");
  expect([status, json["data"]]).toEqual([200, []]);
});
