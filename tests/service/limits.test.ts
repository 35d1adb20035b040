import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { delta, finish, openGate, type Step } from "../doubles/scripted-deployment.ts";
import { untilStill } from "../doubles/until-still.ts";
import { occupy } from "./occupy.ts";
import { openRawConnection, wholePost } from "./raw-connection.ts";
import { expectPlainRefusal, expectRefusal, shapeOf } from "./refusals.ts";
import { formats, startService } from "./start-service.ts";
import { untilKeySeen } from "./until-key-seen.ts";

const [chat, responses, messages] = formats;
const countPath = "/v1/messages/count_tokens";
const says = {
  concurrent: /runs 4 requests already.*Wait until one has ended/,
  rate: /in any 60 seconds, and has. Wait \d+ s/,
  draining: /shutting down. Try again in a moment/,
};

describe("two keys of one account", () => {
  it("share four slots and one balance", async () => {
    await using service = await startService();
    const { key, accountId } = await service.newKey("1");
    const { secret: other } = await service.ledger.createKey(accountId, "other");
    const running = await occupy(service, [key, other, key, other]);
    const sent = service.deployment.requests.length;
    const { held } = await service.credit(accountId);
    expect(held).toBeGreaterThan(0n);
    for (const { path, body } of formats)
      for (const one of [key, other])
        await expectRefusal(await service.post(path, body, { key: one }), {
          code: "too_many_concurrent",
          shape: shapeOf(path),
          says: says.concurrent,
        });
    expect(service.deployment.requests.length).toBe(sent);
    expect((await service.credit(accountId)).held).toBe(held);
    // Neither another account nor a count of tokens is concerned.
    expect((await service.post(chat.path, chat.body)).status).toBe(200);
    expect((await service.post(countPath, messages.body, { key })).status).toBe(200);
    running.open();
    for (const answer of running.answers) expect(await answer).toContain("[DONE]");
    await service.settledCredit(accountId);
    expect((await service.post(chat.path, chat.body, { key: other })).status).toBe(200);

    const left = (await service.settledCredit(accountId)).balance;
    await service.ledger.creditAccount(accountId, -left, null);
    for (const one of [key, other])
      expect((await service.post(chat.path, chat.body, { key: one })).status).toBe(402);
  });

  it("get four of twelve requests that come at the very same time through, whatever their format", async () => {
    await using service = await startService();
    const { key, accountId } = await service.newKey("10");
    const { secret: other } = await service.ledger.createKey(accountId, "other");
    let refused = 0;
    const gate = openGate();
    service.deployment.answerAlways(gate.step, delta({ content: "x" }), finish("stop"));
    const answers = Array.from({ length: 12 }, async (_, index) => {
      const { path, body } = formats[index % 3] ?? chat;
      const response = await service.post(path, body, { key: index % 2 === 0 ? key : other });
      if (response.status === 429) {
        const shape = shapeOf(path);
        await expectRefusal(response, {
          code: "too_many_concurrent",
          shape,
          says: says.concurrent,
        });
        if ((refused += 1) === 8) gate.open();
      } else await response.text();
      return response.status;
    });
    const statuses = await Promise.all(answers);
    expect(statuses.filter((status) => status === 200)).toHaveLength(4);
    expect(statuses.filter((status) => status === 429)).toHaveLength(8);
    expect(service.deployment.requests).toHaveLength(4);
    expect((await service.settledCredit(accountId)).held).toBe(0n);
  });

  it("have a rate each, which a 429 for either reason does not count against", async () => {
    await using service = await startService({
      environment: { TRIBUTARY_REQUESTS_PER_MINUTE: "6" },
    });
    const { key, accountId } = await service.newKey("10");
    const { secret: other } = await service.ledger.createKey(accountId, "other");
    const sinceMs = performance.now();
    const running = await occupy(service, [key, key, key, key]);
    for (let tries = 0; tries < 10; tries += 1)
      await expectRefusal(await service.post(responses.path, responses.body, { key }), {
        code: "too_many_concurrent",
        shape: "openai",
        says: says.concurrent,
      });
    running.open();
    await Promise.all(running.answers);
    await service.settledCredit(accountId);
    // Four were served; whatever else passed the key counts, also a bad request and a count of tokens.
    expect((await service.post(chat.path, "{", { key })).status).toBe(400);
    const last = await service.post(countPath, messages.body, { key });
    expect(last.status).toBe(200);
    expect(last.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    for (const path of [chat.path, responses.path, messages.path, countPath]) {
      const over = await service.post(path, messages.body, { key });
      await expectRefusal(over, { code: "rate_limited", shape: shapeOf(path), says: says.rate });
      expectRateHeaders(over.headers, {
        limit: 6,
        remaining: 0,
        messages: path !== chat.path && path !== responses.path,
        sinceMs,
      });
    }
    const fresh = await service.post(countPath, messages.body, { key: other });
    expect(fresh.status).toBe(200);
    expect(fresh.headers.get("x-ratelimit-remaining-requests")).toBe("5");
  });
});

describe("the informing headers", () => {
  it("count down in both spellings, on errors too, and say when the window is empty", async () => {
    await using service = await startService();
    const sinceMs = performance.now();
    for (const [index, [path, body, status]] of (
      [
        [chat.path, chat.body, 200],
        [responses.path, { ...responses.body, stream: true }, 200],
        [messages.path, messages.body, 200],
        [countPath, messages.body, 200],
        [messages.path, {}, 400],
        [chat.path, "[", 400],
      ] as const
    ).entries()) {
      const response = await service.post(path, body);
      expect(response.status).toBe(status);
      await response.text();
      expectRateHeaders(response.headers, {
        limit: 600,
        remaining: 599 - index,
        messages: shapeOf(path) === "messages",
        sinceMs,
      });
    }
    expect(
      (await fetch(`${service.url}/v1/models`)).headers.has("x-ratelimit-limit-requests"),
    ).toBe(false);
  });
});

function expectRateHeaders(
  headers: Headers,
  expected: {
    readonly limit: number;
    readonly remaining: number;
    readonly messages: boolean;
    /** By `performance.now()`, before the first request of the window. */
    readonly sinceMs: number;
  },
): void {
  const passed = Math.ceil((performance.now() - expected.sinceMs) / 1_000);
  expect(headers.get("x-ratelimit-limit-requests")).toBe(String(expected.limit));
  expect(headers.get("x-ratelimit-remaining-requests")).toBe(String(expected.remaining));
  const reset = /^(\d+)s$/.exec(headers.get("x-ratelimit-reset-requests") ?? "")?.[1];
  expect(Number(reset)).toBeGreaterThanOrEqual(59 - passed);
  expect(Number(reset)).toBeLessThanOrEqual(60);
  const prefix = "anthropic-ratelimit-requests";
  expect(headers.get(`${prefix}-limit`)).toBe(expected.messages ? String(expected.limit) : null);
  expect(headers.get(`${prefix}-remaining`)).toBe(
    expected.messages ? String(expected.remaining) : null,
  );
  const at = headers.get(`${prefix}-reset`);
  if (!expected.messages) expect(at).toBeNull();
  else {
    expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const answeredAtMs = Date.parse(headers.get("date") ?? "");
    const apart = Math.abs(Date.parse(at ?? "") - answeredAtMs - Number(reset) * 1_000);
    expect(apart).toBeLessThanOrEqual((passed + 2) * 1_000);
  }
}

describe("600 requests in 60 seconds", () => {
  it("are served, the 601st is not, and nobody else is concerned", async () => {
    await using service = await startService();
    const { key, accountId } = await service.newKey("10");
    const { secret: other } = await service.ledger.createKey(accountId, "other");
    const bad = (one: string): Promise<Response> => service.post(chat.path, {}, { key: one });
    const sinceMs = performance.now();
    const remaining = new Set<string>();
    for (let batch = 0; batch < 20; batch += 1) {
      const answers = await Promise.all(Array.from({ length: 30 }, () => bad(key)));
      for (const answer of answers) {
        expect(answer.status).toBe(400);
        remaining.add(answer.headers.get("x-ratelimit-remaining-requests") ?? "");
      }
      await Promise.all(answers.map((answer) => answer.text()));
    }
    // Each of the 600 had a place of its own.
    expect(remaining.size).toBe(600);
    const over = await bad(key);
    expectRateHeaders(over.headers, { limit: 600, remaining: 0, messages: false, sinceMs });
    await expectRefusal(over, { code: "rate_limited", shape: "openai", says: says.rate });
    expect((await bad(other)).status).toBe(400);
    expect((await fetch(`${service.url}/v1/models`)).status).toBe(200);
  });
});

describe("a key that is revoked, an account that is disabled", () => {
  it("while four streams run: they go on, the next request does not", async () => {
    await using service = await startService();
    const { key, accountId } = await service.newKey("10");
    const running = await occupy(service, [key, key]);
    const [record] = await service.ledger.listKeys(accountId);
    await service.ledger.revokeKey(record?.id ?? "");
    expect((await service.post(chat.path, chat.body, { key })).status).toBe(401);
    const { secret: other } = await service.ledger.createKey(accountId, "other");
    await service.ledger.setAccountStatus(accountId, "disabled");
    expect((await service.post(chat.path, chat.body, { key: other })).status).toBe(403);
    running.open();
    for (const answer of running.answers) expect(await answer).toContain("[DONE]");
    expect((await service.settledCredit(accountId)).held).toBe(0n);
  });

  it("between a request's head and its body is refused at admission", async () => {
    await using service = await startService();
    const { key, accountId } = await service.newKey("10");
    const text = wholePost(messages.path, JSON.stringify(messages.body), { "x-api-key": key });
    for (const [change, code, status] of [
      ["disabled", "account_disabled", 403],
      ["revoked", "authentication", 401],
    ] as const) {
      await service.ledger.setAccountStatus(accountId, "active");
      using connection = await openRawConnection(service.url);
      await untilKeySeen(service, key, () => connection.write(text.slice(0, -5)));
      if (change === "disabled") await service.ledger.setAccountStatus(accountId, "disabled");
      else {
        const [record] = await service.ledger.listKeys(accountId);
        await service.ledger.revokeKey(record?.id ?? "");
      }
      connection.write(text.slice(-5));
      const answer = await connection.answer();
      expect(answer.status).toBe(status);
      expectPlainRefusal(answer, { code, shape: "messages", says: /Ask the operator/ });
    }
    expect(service.deployment.requests).toHaveLength(0);
  });
});

describe("a process that is full", () => {
  it("refuses one generation more, until one has ended", async () => {
    await using service = await startService({ environment: { TRIBUTARY_GENERATIONS_MAX: "2" } });
    const { key } = await service.newKey("10");
    const running = await occupy(service, [service.key, key]);
    for (const { path, body } of formats)
      await expectRefusal(await service.post(path, body), {
        code: "overloaded",
        shape: shapeOf(path),
        says: /as many generations as it may. Try again/,
      });
    expect((await service.post(countPath, messages.body)).status).toBe(200);
    running.open();
    await Promise.all(running.answers);
    await expect.poll(async () => (await service.post(chat.path, chat.body)).status).toBe(200);
    await service.settledCredit();
  });
});

describe("a drain", () => {
  it("keeps listening, refuses what is new, lets what runs finish", async () => {
    await using service = await startService({ environment: { TRIBUTARY_DRAIN_SECONDS: "20" } });
    const running = await occupy(service, [service.key, service.key]);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
    let drained = false;
    const draining = service.gateway.drain().then(() => (drained = true));
    for (const path of [chat.path, responses.path, messages.path, countPath])
      await expectRefusal(await service.post(path, messages.body), {
        code: "overloaded",
        shape: shapeOf(path),
        says: says.draining,
      });
    const ready = await fetch(`${service.url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ reasons: { service: "shutting down" } });
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expect(drained).toBe(false);
    running.open();
    for (const answer of running.answers) expect(await answer).toContain("[DONE]");
    await draining;
    expect((await service.settledCredit()).held).toBe(0n);
    expect(service.deployment.requests).toHaveLength(2);
  });

  it.each(formats)(
    "fails $name beyond its time, in its own words, and charges nothing",
    async (format) => {
      const { path, body } = format;
      await using service = await startService({ environment: { TRIBUTARY_DRAIN_SECONDS: "0" } });
      const before = await service.credit();
      service.deployment.answerNext(delta({ content: "half" }), { type: "hang" });
      service.deployment.answerNext(delta({ content: "half" }), { type: "hang" });
      service.deployment.answerNext({ type: "hang" });
      const streamed = await service.post(path, { ...body, stream: true });
      const reader = streamed.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (!text.includes("half")) text += (await reader?.read())?.value ?? "";
      const whole = service.post(path, body);
      const silent = service.post(path, { ...body, stream: true });
      await service.deployment.request(2);
      await service.gateway.drain();
      for (;;) {
        const read = await reader?.read();
        if (read?.value === undefined) break;
        text += read.value;
      }
      expect(text).toMatch(/shutting down before this answer was complete. Nothing was charged/);
      expect(text).not.toMatch(/\[DONE\]|response\.completed|message_stop/);
      if (path === responses.path) expect(text).toContain("event: response.failed");
      for (const answer of [whole, silent])
        await expectRefusal(await answer, {
          code: "overloaded",
          shape: shapeOf(path),
          says: /shutting down before.*Nothing was charged/,
        });
      expect(await service.credit()).toEqual({ balance: before.balance, held: 0n });
      for (const request of service.deployment.requests)
        expect((await request.ended).byPeer).toBe(true);
    },
  );

  it("waits until a slow reader has the end of its answer", async () => {
    await using service = await startService({ environment: { TRIBUTARY_DRAIN_SECONDS: "20" } });
    const answer = watchAnswer(chat.path);
    const isFull = (): boolean => answer.unsentBytes() > 200_000;
    let last = 0;
    // In small helpings, until no more fits into the kernel's buffers.
    const helping: readonly Step[] = [
      {
        type: "numbers",
        get count() {
          return isFull() ? 0 : 300;
        },
        text: () => `<${String((last += 1))}>`,
      },
      {
        type: "wait",
        get until() {
          return untilStill(() => answer.unsentBytes());
        },
      },
    ];
    const steps = Array.from({ length: 400 }, () => helping).flat();
    service.deployment.answerNext(...steps, finish("stop"));
    using connection = await openRawConnection(service.url);
    const headers = { authorization: `Bearer ${service.key}` };
    const body = JSON.stringify({ ...chat.body, stream: true });
    connection.socket.pause();
    connection.write(wholePost(chat.path, body, headers));
    await service.deployment.request(0);
    // Settled, so that nothing runs any more; but its reader has not read it.
    await expect.poll(async () => (await service.credit()).held).toBe(0n);
    expect(answer.unsentBytes()).toBeGreaterThan(100_000);
    let closed = false;
    const closing = service.gateway[Symbol.asyncDispose]().then(() => (closed = true));
    await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status).toBe(503);
    expect(closed).toBe(false);
    connection.socket.resume();
    await closing;
    await connection.closed;
    // Not as a whole in a message: there are megabytes of it.
    expect(connection.text.includes(`<${String(last)}>`)).toBe(true);
    expect(connection.text.slice(-200)).toMatch(/\[DONE\][\r\n]*0\r\n\r\n$/);
  });

  it("does not wait for a body longer than its time, and admits nothing after it", async () => {
    await using service = await startService({ environment: { TRIBUTARY_DRAIN_SECONDS: "0" } });
    const text = wholePost(chat.path, JSON.stringify(chat.body), {
      authorization: `Bearer ${service.key}`,
    });
    using connection = await openRawConnection(service.url);
    await untilKeySeen(service, service.key, () => connection.write(text.slice(0, -5)));
    // A drain that waited for the body would not end before this test's time.
    await service.gateway.drain();
    connection.write(text.slice(-5));
    expectPlainRefusal(await connection.answer(), {
      code: "overloaded",
      shape: "openai",
      says: says.draining,
    });
    expect(service.deployment.requests).toHaveLength(0);
    expect((await service.credit()).held).toBe(0n);
  });
});

/** Bytes of the next answer on a path that the service has not yet been able to hand to the kernel. */
function watchAnswer(path: string): { unsentBytes(): number } {
  let response: ServerResponse | null = null;
  const channel = "http.server.request.start";
  subscribe(channel, function onStart(message) {
    const started = message as { request: IncomingMessage; response: ServerResponse };
    if (started.request.url !== path) return;
    response = started.response;
    unsubscribe(channel, onStart);
  });
  return { unsentBytes: () => response?.writableLength ?? 0 };
}
