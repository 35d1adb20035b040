import { afterAll, beforeAll, expect, test } from "vitest";
import { startOperators, type TestOperators } from "./start-operators.ts";

// Budgets of keys as a program of an operator sets them.

let operators: TestOperators;
beforeAll(async () => (operators = await startOperators()));
afterAll(() => operators[Symbol.asyncDispose]());

async function makeKey(body: object): Promise<Record<string, unknown>> {
  const account = await operators.ask("/api/v1/accounts", { body: { name: "team", credit: "10" } });
  return (await operators.ask(`/api/v1/accounts/${String(account.json["id"])}/keys`, { body }))
    .json;
}

test("a key is made with a budget, which is changed, shown and taken away", async () => {
  const budget = { amount: "25", period: "month", timezone: "Europe/Berlin" };
  const made = await makeKey({ budget });
  expect(made).toMatchObject({ budget, budget_spent: "0", budget_held: "0", budget_left: "25" });
  const { json: key } = await operators.ask(`/api/v1/keys/${String(made["id"])}`);
  expect(Date.parse(String(key["budget_ends_at"]))).toBeGreaterThan(Date.now());
  expect(key["budget_begins_at"]).toMatch(/T2[23]:00:00.000Z$/);
  const path = `/api/v1/keys/${String(made["id"])}`;
  const change = (to: unknown): ReturnType<TestOperators["ask"]> =>
    operators.ask(path, { method: "PATCH", body: { budget: to } });
  const raised = await change({ amount: "40" });
  expect(raised.json).toMatchObject({ budget: { ...budget, amount: "40" }, budget_left: "40" });
  expect((await change({ period: "total" })).json).toMatchObject({
    budget: { ...budget, amount: "40", period: "total" },
    budget_ends_at: null,
  });
  expect((await change(null)).json).toMatchObject({ budget: null, budget_left: null });
  const log = await operators.ask(`/api/v1/audit?target=${String(made["id"])}`);
  expect(log.json["data"]).toMatchObject([
    { before: { budget_amount: "40" }, after: { budget_amount: null } },
    { before: { budget_period: "month" }, after: { budget_period: "total" } },
    { before: { budget_amount: "25" }, after: { budget_amount: "40" } },
    { action: "key.create", after: { budget_amount: "25", budget_period: "month" } },
  ]);
});

test.each([
  [{ amount: "1", period: "month", timezone: "Mars/Phobos" }, "budget.timezone"],
  [{ amount: "1", period: "year" }, "budget.period"],
  [{ amount: "-1", period: "day" }, "budget.amount"],
  [{ amount: 1, period: "day" }, "budget.amount"],
  [{ amount: "1", period: "day", left: "1" }, "budget"],
  [{ period: "day" }, "budget.amount"],
  [{ amount: "1" }, "budget.period"],
])("a budget that is none is refused by its field: %j", async (budget, field) => {
  const key = await makeKey({});
  const path = `/api/v1/keys/${String(key["id"])}`;
  const { json, status } = await operators.ask(path, { method: "PATCH", body: { budget } });
  expect([status, json["code"]]).toEqual([400, "invalid_value"]);
  expect(`${String(json["param"])} ${String(json["detail"])}`).toContain(field);
  expect((await operators.ask(path)).json).toMatchObject({ budget: null });
});
