import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { DatabaseSync } from "node:sqlite";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { delta, type RecordedRequest } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";
import { untilKeySeen } from "./until-key-seen.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

/** The deployment sees its connection closed. The service's own limits would do that too, after this test has failed by its time. */
async function expectClosedByPeer(request: RecordedRequest): Promise<void> {
  expect(await request.ended).toMatchObject({ byPeer: true });
}

/** Resolves when the service has worked through the next bytes of the deployment's answer that hold the words. */
async function untilRead(words: string): Promise<void> {
  const channel = "undici:request:bodyChunkReceived";
  const { promise, resolve } = Promise.withResolvers<void>();
  const onChunk = (message: unknown): void => {
    if (String((message as { readonly chunk: Buffer }).chunk).includes(words)) resolve();
  };
  subscribe(channel, onChunk);
  await promise;
  unsubscribe(channel, onChunk);
  // The channel speaks before the service gets the bytes, in the same turn.
  await nextTurn();
}

/** Resolves when the service has heard that the client of the next request with the key has left. */
function untilLeft(key: string): Promise<void> {
  const channel = "http.server.request.start";
  return new Promise((resolve) => {
    const onStart = (message: unknown): void => {
      const { request, response } = message as {
        readonly request: IncomingMessage;
        readonly response: ServerResponse;
      };
      if (!JSON.stringify(request.headers).includes(key)) return;
      unsubscribe(channel, onStart);
      // All of the service's listeners have been called by the next turn.
      response.once("close", () => setImmediate(resolve));
    };
    subscribe(channel, onStart);
  });
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
    await expectClosedByPeer(request);
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
    await expectClosedByPeer(await call.request);
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
    await expectClosedByPeer(await call.request);
    const bytes = Buffer.byteLength(JSON.stringify({ ...body, stream: true }));
    const charge = costNanos(Math.ceil(bytes / 4), 2, service.config.prices);
    expect((await service.settledCredit(call.accountId)).balance).toBe(call.before - charge);
  });

  it("of a whole answer pays by the same rule", async () => {
    service.deployment.answerNext(delta({ content: "one" }), { type: "hang" });
    const read = untilRead("one");
    const call = await begin(false);
    const request = await call.request;
    // Nothing of the first token is visible to the client.
    await read;
    call.controller.abort();
    await expectClosedByPeer(request);
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
      let answered: Promise<unknown> = Promise.resolve();
      const left = untilLeft(key);
      await untilKeySeen(service, key, () => {
        answered = service
          .post(path, { ...body, stream: true }, { key, signal: controller.signal })
          .then(() => "answered")
          .catch(() => "left");
      });
      // Of another account, it is admitted behind the one that leaves.
      const next = service.post(path, body);
      controller.abort();
      expect(await answered).toBe("left");
      // The client knows before the service does; an admission that comes in between would reach the deployment.
      await left;
      other.exec("rollback");
      expect((await next).status).toBe(200);
      expect(await service.settledCredit(accountId)).toEqual({ balance: before, held: 0n });
      expect(service.deployment.requests.length).toBe(sent + 1);
      // It had been admitted, and its client had gone by then: one that leaves earlier has no generation.
      const [line = ""] = service.logLines.filter(
        (one) => one.includes('"event":"request"') && one.includes(accountId),
      );
      expect(line).toContain('"outcome":"cancelled-before-output"');
    });
  },
);
