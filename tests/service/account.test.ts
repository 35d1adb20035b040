import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { delta, finish, openGate } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({ environment: { TRIBUTARY_REQUESTS_PER_MINUTE: "7" } });
});
afterAll(() => service[Symbol.asyncDispose]());

function get(path: string, key: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(service.url + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
}

async function json(path: string, key: string): Promise<Record<string, unknown>> {
  const response = await get(path, key);
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe("no-store");
  return (await response.json()) as Record<string, unknown>;
}

describe("GET /account", () => {
  it("tells balance, held, limits and what runs, before, during and after a request", async () => {
    const { accountId, key } = await service.newKey("2");
    const idle = await json("/account", key);
    expect(idle).toEqual({
      id: accountId,
      name: "test",
      status: "active",
      balance: "2",
      held: "0",
      available: "2",
      budget: null,
      budget_spent: null,
      budget_held: null,
      budget_left: null,
      budget_begins_at: null,
      budget_ends_at: null,
      prices: { input: "1", cached_input: "1", output: "4" },
      limits: {
        concurrent_requests: 4,
        requests_per_minute: 7,
        requests_remaining: 7,
        output_allowance_default: 32_768,
        output_allowance_max: 65_536,
        input_bound_max: 2_000_000,
      },
      running_requests: [],
      head: expect.stringMatching(new RegExp(`^${accountId}:1:[0-9a-f]{64}$`)) as string,
    });
    const gate = openGate();
    service.deployment.answerNext(
      delta({ content: "a" }),
      gate.step,
      finish("stop", { promptTokens: 5, completionTokens: 1 }),
    );
    const response = await service.post(
      "/v1/chat/completions",
      { messages: [{ role: "user", content: "hi" }], max_tokens: 100, stream: true },
      { key },
    );
    const busy = await json("/account", key);
    const id = response.headers.get("x-request-id");
    expect(busy["running_requests"]).toEqual([
      {
        id,
        key: expect.stringMatching(/^key_/) as string,
        format: "chat-completions",
        streamed: true,
        output_allowance: 100,
        reserved: busy["held"],
        admitted_at: expect.stringMatching(/^20\d\d-.*Z$/) as string,
      },
    ]);
    expect(Number(busy["held"])).toBeGreaterThan(0.0004);
    expect(Number(busy["available"])).toBeCloseTo(2 - Number(busy["held"]), 9);
    expect(await json(`/receipts/${id ?? ""}`, key)).toMatchObject({
      id,
      state: "open",
      charged: null,
      usage: null,
      reserved: busy["held"],
    });
    gate.open();
    await response.text();
    expect(await json("/account", key)).toMatchObject({
      balance: "1.999991",
      held: "0",
      available: "1.999991",
      running_requests: [],
      head: (await json(`/receipts/${id ?? ""}`, key))["head"],
    });
  });

  it("does not count against the rate", async () => {
    const { key } = await service.newKey("1");
    for (let n = 0; n < 20; n += 1) {
      const response = await get("/account", key);
      expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("7");
      await response.body?.cancel();
    }
  });

  it("wants a key, and shows nothing to one that is revoked or disabled", async () => {
    expect((await fetch(`${service.url}/account`)).status).toBe(401);
    const { accountId, key } = await service.newKey("1");
    await service.ledger.setAccountStatus(accountId, "disabled");
    expect((await get("/account", key)).status).toBe(403);
  });

  it("is read only", async () => {
    const response = await fetch(`${service.url}/account`, { method: "POST" });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("GET, HEAD");
  });
});

describe("GET /receipts/{request id}", () => {
  it.each(formats)("tells what a request of $name cost", async ({ name, path, body }) => {
    const { accountId, key } = await service.newKey("1");
    service.deployment.answerNext(
      delta({ content: "a" }),
      finish("stop", { promptTokens: 50, completionTokens: 10 }),
    );
    const response = await service.post(path, body, { key });
    expect(response.status).toBe(200);
    await response.text();
    const id = response.headers.get("x-request-id") ?? "";
    const allowance = Number(response.headers.get("x-tributary-output-allowance"));
    const receipt = await json(`/receipts/${id}`, key);
    expect(receipt).toMatchObject({
      id,
      account: accountId,
      format: name,
      streamed: false,
      state: "settled",
      outcome: "completed",
      output_allowance: allowance,
      price_list: "default",
      prices: { input: "1", cached_input: "1", output: "4" },
      charged: "0.00009",
      usage: {
        input_tokens: 50,
        cached_input_tokens: 0,
        output_tokens: 10,
        reasoning_tokens: 0,
      },
      head: expect.stringMatching(new RegExp(`^${accountId}:3:[0-9a-f]{64}$`)) as string,
    });
    expect(Date.parse(String(receipt["resolved_at"]))).toBeGreaterThanOrEqual(
      Date.parse(String(receipt["admitted_at"])),
    );
    expect((await service.ledger.verify([String(receipt["head"])])).problems).toEqual([]);
  });

  it("is 404 for another account's request, and for none", async () => {
    const { key } = await service.newKey("1");
    const other = await service.newKey("1");
    const response = await service.post(
      "/v1/chat/completions",
      { messages: [{ role: "user", content: "hi" }] },
      { key },
    );
    await response.text();
    const id = response.headers.get("x-request-id") ?? "";
    expect((await get(`/receipts/${id}`, key)).status).toBe(200);
    const answers = await Promise.all(
      [`/receipts/${id}`, "/receipts/req_nobody", "/receipts/%00", "/receipts/x/y"].map(
        async (path) => {
          const answer = await get(path, other.key);
          return [answer.status, ((await answer.json()) as { error: object }).error];
        },
      ),
    );
    const [[, first]] = answers as [[number, Record<string, unknown>]];
    const message = first["message"];
    // The answer does not show whether the other account's request exists.
    for (const [status, error] of answers) {
      expect(status).toBe(404);
      expect(error).toMatchObject({ code: "not_found", message });
    }
  });

  it("speaks to callers of Messages in their shape", async () => {
    const { key } = await service.newKey("1");
    const response = await fetch(`${service.url}/receipts/req_x`, {
      headers: { "x-api-key": key, "anthropic-version": "2023-06-01" },
    });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: { type: "not_found_error" },
    });
  });
});
