import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { delta, type RecordedRequest } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

const closedWithinMs = 1_000;

/** When the deployment saw its connection closed, after the client left at `leftAtMs`. */
async function expectClosedByPeer(request: RecordedRequest, leftAtMs: number): Promise<void> {
  const end = await Promise.race([request.ended, sleep(3 * closedWithinMs, null)]);
  expect(end).not.toBeNull();
  expect(end?.byPeer).toBe(true);
  expect((end?.atMs ?? Infinity) - leftAtMs).toBeLessThan(closedWithinMs);
}

describe.each(formats)("a client of $name that leaves", ({ path, body }) => {
  async function begin(streamed: boolean): Promise<{
    readonly accountId: string;
    readonly before: bigint;
    readonly controller: AbortController;
    readonly response: Promise<Response>;
    readonly request: Promise<RecordedRequest>;
  }> {
    const { key, accountId } = await service.newKey("10");
    const controller = new AbortController();
    const request = service.deployment.request(service.deployment.requests.length);
    const response = service.post(
      path,
      { ...body, stream: streamed },
      { key, signal: controller.signal },
    );
    response.catch(() => undefined);
    const before = (await service.credit(accountId)).balance;
    return { accountId, before, controller, response, request };
  }

  it("before the deployment's headers pays nothing", async () => {
    service.deployment.answerNext({ type: "hang" });
    const call = await begin(true);
    const request = await call.request;
    call.controller.abort();
    await expectClosedByPeer(request, performance.now());
    expect((await service.settledCredit(call.accountId)).balance).toBe(call.before);
  });

  it("while the prompt is processed pays nothing", async () => {
    service.deployment.answerNext(
      { type: "write", bytes: ": processing\n\n" },
      delta({ role: "assistant", content: "" }),
      { type: "hang" },
    );
    const call = await begin(true);
    const reader = (await call.response).body?.getReader();
    await reader?.read();
    call.controller.abort();
    await expectClosedByPeer(await call.request, performance.now());
    expect((await service.settledCredit(call.accountId)).balance).toBe(call.before);
  });

  it("in mid-text pays for the input and what was made until then", async () => {
    service.deployment.answerNext(
      delta({ role: "assistant", content: "" }),
      delta({ content: "one" }),
      delta({ content: " two" }),
      { type: "hang" },
    );
    const call = await begin(true);
    const reader = (await call.response).body?.pipeThrough(new TextDecoderStream()).getReader();
    let read = "";
    while (!read.includes(" two")) read += (await reader?.read())?.value ?? "";
    call.controller.abort();
    await expectClosedByPeer(await call.request, performance.now());
    const bytes = Buffer.byteLength(JSON.stringify({ ...body, stream: true }));
    const charge = costNanos(Math.ceil(bytes / 4), 2, service.config.prices);
    expect((await service.settledCredit(call.accountId)).balance).toBe(call.before - charge);
  });

  it("of a whole answer pays by the same rule", async () => {
    service.deployment.answerNext(delta({ content: "one" }), { type: "hang" });
    const call = await begin(false);
    const request = await call.request;
    // The first token must have arrived; nothing of it is visible from outside.
    await sleep(100);
    call.controller.abort();
    await expectClosedByPeer(request, performance.now());
    const bytes = Buffer.byteLength(JSON.stringify({ ...body, stream: false }));
    const charge = costNanos(Math.ceil(bytes / 4), 1, service.config.prices);
    expect((await service.settledCredit(call.accountId)).balance).toBe(call.before - charge);
  });
});

describe.each(formats)(
  "a client of $name that leaves while its admission is queued",
  ({ path, body }) => {
    it("pays nothing and reaches no deployment", async () => {
      const { database } = service.config;
      if (database.kind !== "sqlite") throw new Error("this test locks an SQLite file");
      const { key, accountId } = await service.newKey("10");
      const before = (await service.credit(accountId)).balance;
      const sent = service.deployment.requests.length;
      using other = new DatabaseSync(database.path);
      // Another process that writes: the admission waits for it.
      other.exec("begin immediate");
      const controller = new AbortController();
      const answered = service
        .post(path, { ...body, stream: true }, { key, signal: controller.signal })
        .then(() => "answered")
        .catch(() => "left");
      await sleep(150);
      controller.abort();
      expect(await answered).toBe("left");
      await sleep(50);
      other.exec("rollback");
      expect(await service.settledCredit(accountId)).toEqual({ balance: before, held: 0n });
      // Long enough for a request that should not have been sent to arrive.
      await sleep(150);
      expect(service.deployment.requests.length).toBe(sent);
      expect((await service.credit(accountId)).held).toBe(0n);
    });
  },
);
