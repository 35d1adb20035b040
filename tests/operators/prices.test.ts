import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startOperators, type TestOperators } from "./start-operators.ts";

// Price lists as a program of an operator meets them.

let operators: TestOperators;
beforeAll(async () => (operators = await startOperators()));
afterAll(() => operators[Symbol.asyncDispose]());

const path = "/api/v1/price_lists";
const now = { input: "1", output: "4" };
const later = { effective_from: "2099-01-01T01:00:00+01:00", input: "2", output: "8" };

test("lists are made, shown, changed and listed; the settings are `default` until it is made", async () => {
  const settings = {
    name: "default",
    source: "settings",
    prices: [{ effective_from: null, input: "1", cached_input: "1", output: "4" }],
    created_at: null,
    version: 0,
  };
  expect((await operators.ask(`${path}/default`)).json).toEqual(settings);
  const body = { name: "team a", prices: [later, { ...now, cached_input: "0.1" }] };
  const init = { body, headers: { "idempotency-key": "one" } };
  const made = await operators.ask(path, init);
  expect(made).toMatchObject({
    status: 200,
    json: {
      name: "team a",
      source: "ledger",
      prices: [
        { input: "1", cached_input: "0.1", output: "4" },
        { effective_from: "2099-01-01T00:00:00.000Z", cached_input: "2", output: "8" },
      ],
      version: 1,
    },
  });
  expect((await operators.ask(path, init)).json).toEqual(made.json);
  expect((await operators.ask(`${path}/team%20a`)).json).toEqual(made.json);
  const patch = { method: "PATCH", body: { prices: [{ ...later, input: "3" }] } };
  const changed = await operators.ask(`${path}/team%20a`, patch);
  expect(changed.json).toMatchObject({
    version: 2,
    prices: [{ cached_input: "0.1" }, { input: "3" }],
  });
  // What was read may be sent back.
  const again = { method: "PATCH", body: { prices: changed.json["prices"] } };
  expect((await operators.ask(`${path}/team%20a`, again)).json).toEqual(changed.json);
  const late = { ...again, headers: { "if-match": "1" } };
  expect(await operators.ask(`${path}/team%20a`, late)).toMatchObject({
    status: 412,
    json: { code: "version_conflict", param: "if-match" },
  });
  const nothing = { method: "PATCH", body: {} };
  expect((await operators.ask(`${path}/team%20a`, nothing)).json).toEqual(changed.json);

  const first = await operators.ask(`${path}?limit=1`);
  expect(first.json["data"]).toEqual([settings]);
  const next = `${path}?limit=1&cursor=${String(first.json["next_cursor"])}`;
  expect((await operators.ask(next)).json).toEqual({ data: [changed.json], next_cursor: null });

  const made2 = await operators.ask(path, { body: { name: "default", prices: [later] } });
  expect((await operators.ask(`${path}/default`)).json).toEqual(made2.json);
});

test("an account gets a list, and gives it back with null", async () => {
  await operators.ask(path, { body: { name: "gold", prices: [now] } });
  const { json } = await operators.ask("/api/v1/accounts", { body: { name: "a" } });
  expect(json["price_list"]).toBeNull();
  const account = `/api/v1/accounts/${String(json["id"])}`;
  const give = async (name: unknown): Promise<unknown> =>
    (await operators.ask(account, { method: "PATCH", body: { price_list: name } })).json;
  expect(await give("gold")).toMatchObject({ price_list: "gold" });
  expect((await operators.ask(account)).json).toMatchObject({ price_list: "gold" });
  expect(await give("silver")).toMatchObject({ code: "not_found", status: 404 });
  expect(await give("default")).toMatchObject({ price_list: "default" });
  expect(await give(null)).toMatchObject({ price_list: null });
});

describe("what is wrong is told with its field", () => {
  const price = (change: object): object => ({ name: "bad", prices: [{ ...now, ...change }] });
  test.each([
    [{ prices: [now] }, "name"],
    [{ name: "", prices: [now] }, "name"],
    [{ name: "x".repeat(65), prices: [now] }, "name"],
    [{ name: "bad" }, "prices"],
    [{ name: "bad", prices: [] }, "prices"],
    [{ name: "bad", prices: {} }, "prices"],
    [{ name: "bad", prices: Array.from({ length: 201 }, () => now) }, "prices"],
    [{ name: "bad", prices: [{ input: "1" }] }, "prices.0.output"],
    [price({ input: 1 }), "prices.0.input"],
    [price({ input: "-1" }), "prices.0.input"],
    [price({ input: "1e3" }), "prices.0.input"],
    [price({ output: "1000000.000000001" }), "prices.0.output"],
    [price({ cached_input: "0.0000000001" }), "prices.0.cached_input"],
    [price({ effective_from: "tomorrow" }), "prices.0.effective_from"],
    [price({ effective_from: "2099-02-30T00:00:00Z" }), "prices.0.effective_from"],
    [price({ currency: "EUR" }), "prices.0.currency"],
  ])("%j", async (body, param) => {
    const answer = await operators.ask(path, { body });
    expect(answer).toMatchObject({ status: 400, json: { code: "invalid_value", param } });
  });

  test("what the ledger refuses, too", async () => {
    const refused = async (body: object, status: number): Promise<unknown> => {
      const answer = await operators.ask(path, { body });
      expect(answer.status).toBe(status);
      return answer.json["detail"];
    };
    expect(await refused({ name: "a/b", prices: [now] }, 400)).toContain("name of a price list");
    expect(await refused({ name: "new", prices: [later] }, 400)).toContain("none that holds now");
    expect(await refused({ name: "new", prices: [now, now] }, 400)).toContain("two with the same");
    expect((await operators.ask(path, { body: { name: "new", prices: [now] } })).status).toBe(200);
    expect(await refused({ name: "new", prices: [now] }, 409)).toContain("already");
    const past = { ...now, effective_from: "2020-01-01T00:00:00Z" };
    const change = { method: "PATCH", body: { prices: [past] } };
    expect(await operators.ask(`${path}/new`, change)).toMatchObject({
      status: 409,
      json: { code: "not_possible" },
    });
    expect(await operators.ask(`${path}/none`, change)).toMatchObject({ status: 404 });
    expect(await operators.ask(`${path}/none`)).toMatchObject({ status: 404 });
    expect(await operators.ask(`${path}?cursor=%2f`)).toMatchObject({
      status: 400,
      json: { code: "invalid_cursor", param: "cursor" },
    });
  });
});
