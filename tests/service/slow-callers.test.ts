import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { openRawConnection, requestHead, wholePost } from "./raw-connection.ts";
import { expectPlainRefusal, shapeOf, withoutTrace } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const clock = openManualTimers();
let service: TestService;
beforeAll(async () => {
  service = await startService({ clock });
});
afterAll(() => service[Symbol.asyncDispose]());

/** The handler has looked at the key and reads the body: it looks four times a stall whether anything came. */
async function bodyIsRead(): Promise<void> {
  await expect.poll(() => clock.delays).toContain(limits.bodyStallMs / 4);
}

const head = (path: string, headers: Record<string, string | number>): string =>
  requestHead(`POST ${path}`, { authorization: `Bearer ${service.key}`, ...headers });

describe("a slow caller", () => {
  it.each([...formats.map(({ path }) => path), "/v1/messages/count_tokens"])(
    "whose body for %s does not end gets a 408 in its own format, and the connection is closed",
    async (path) => {
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(head(path, { "content-length": 1_000 }));
        await bodyIsRead();
        connection.write('{"messages":[');
        // A byte often enough for the body never to stand still.
        const everyMs = limits.bodyStallMs / 4;
        for (let leftMs: number = limits.requestReceiveMs; leftMs > 0; leftMs -= everyMs) {
          connection.write(" ");
          await fetch(`${service.url}/healthz`);
          expect(connection.text).toBe("");
          clock.advance(everyMs);
        }
        const answer = await connection.answer();
        expectPlainRefusal(answer, {
          code: "request_timeout",
          shape: shapeOf(path),
          says: /did not arrive within 60 seconds. Send it without pauses/,
        });
        expect(answer.headers.get("connection")).toBe("close");
        // What is still sent is thrown away for a while, so that the caller can read the answer.
        await expect.poll(() => clock.delays).toContain(limits.lingerMs);
        clock.advance(limits.lingerMs);
        await connection.closed;
      });
    },
  );

  it("whose body stops half way is not waited for longer, and neither is one in chunks", async () => {
    for (const framing of [{ "content-length": 100 }, { "transfer-encoding": "chunked" }]) {
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(head("/v1/responses", framing));
        connection.write("content-length" in framing ? '{"input":' : '9\r\n{"input":\r\n');
        await bodyIsRead();
        // A quarter more: looks are a quarter apart, and the first may see the bytes come.
        clock.advance(1.25 * limits.bodyStallMs);
        const answer = await connection.answer();
        expect(answer.status).toBe(408);
        expect(answer.text).toContain("Nothing of the body arrived for 10 seconds");
        await expect.poll(() => clock.delays).toContain(limits.lingerMs);
        clock.advance(limits.lingerMs);
        await connection.closed;
      });
    }
  });

  it("who was answered early may finish sending, but not for ever", async () => {
    await withoutTrace(service, async () => {
      using patient = await openRawConnection(service.url);
      const wrong = { authorization: "Bearer no", "content-length": 10 };
      patient.write(head("/v1/messages", wrong) + "12345");
      expect((await patient.answer()).status).toBe(401);
      patient.write("67890");
      // The connection is good for another request then.
      patient.write(requestHead("GET /healthz"));
      expect((await patient.answer()).status).toBe(200);

      using slow = await openRawConnection(service.url);
      slow.write(head("/v1/messages", wrong) + "12345");
      expect((await slow.answer()).status).toBe(401);
      await expect.poll(() => clock.delays).toContain(limits.lingerWithoutKeyMs);
      clock.advance(limits.lingerWithoutKeyMs);
      await slow.closed;

      using endless = await openRawConnection(service.url);
      endless.write(head("/v1/messages", { ...wrong, "content-length": 1e12 }));
      expect((await endless.answer()).status).toBe(401);
      const piece = Buffer.alloc(1024 * 1024, 32);
      let sent = 0;
      while (!endless.socket.destroyed && sent < 200) {
        sent += 1;
        if (!endless.socket.write(piece))
          await Promise.race([once(endless.socket, "drain").catch(() => null), endless.closed]);
      }
      expect(endless.socket.destroyed).toBe(true);
    });
  });
});

describe("a caller who never reads", () => {
  it("is closed, with all the requests that were sent one behind the other", async () => {
    using connection = await openRawConnection(service.url);
    connection.socket.pause();
    connection.write(requestHead("GET /metrics").repeat(2_000));
    // A reset shows with the next write only: a reader that is paused sees no end.
    await expect
      .poll(() => {
        clock.advance(limits.readerStallAfterEndMs);
        connection.write("x");
        return connection.socket.destroyed;
      })
      .toBe(true);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  });
});

describe("a caller who breaks off", () => {
  const body = '{"input":"Hi"}';
  const whole = (): string =>
    wholePost("/v1/responses", body, { authorization: `Bearer ${service.key}` });

  it("anywhere in a request leaves no place taken", async () => {
    const text = whole();
    const headEnd = text.indexOf("\r\n\r\n") + 4;
    const cuts = [0, 10, headEnd - 2, headEnd, headEnd + 1, text.length - 1];
    for (const cut of cuts)
      for (const leave of ["end", "resetAndDestroy"] as const)
        for (const turns of cut < headEnd ? [0, 2] : turnsUntilBreak)
          await withoutTrace(service, async () => {
            using connection = await openRawConnection(service.url);
            const over = requestsOver();
            connection.write(text.slice(0, cut));
            await passTurns(turns);
            connection.socket[leave]();
            await connection.closed;
            const what = `${leave} at ${String(cut)} after ${String(turns)} turns`;
            // A reset may overtake the head; one that was taken up must not be worked on for a minute.
            const begun = cut >= headEnd && (leave === "end" || turns === "body is read");
            if (begun) await expectEndedAsBroken(over + 1, what);
            await expectRoom(what);
          });
  });

  it("in a broken chunk leaves no place taken", async () => {
    for (const turns of turnsUntilBreak)
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(head("/v1/responses", { "transfer-encoding": "chunked" }));
        await passTurns(turns);
        const over = requestsOver();
        connection.write("zz\r\n");
        expect((await connection.answer()).status).toBe(400);
        await expectEndedAsBroken(over + 1, "a broken chunk");
        await expectRoom(`a broken chunk after ${String(turns)} turns`);
      });
  });

  it("by closing only its own half has left all the same", async () => {
    await withoutTrace(service, async () => {
      using half = await openRawConnection(service.url);
      half.write(whole().slice(0, -3));
      half.socket.end();
      await half.closed;
      expectPlainRefusal(await half.answer(), {
        code: "invalid_request",
        shape: "openai",
        says: /ended before its headers say/,
      });
    });
  });

  // Before, while and after the key is looked at: service and caller share the event loop.
  const turnsUntilBreak = [0, 1, 2, 3, 5, 8, "body is read"] as const;
  async function passTurns(turns: number | "body is read"): Promise<void> {
    if (turns === "body is read") return bodyIsRead();
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
  }

  const endings = (): readonly string[] =>
    service.logLines.filter((line) => line.includes('"event":"request"'));
  const requestsOver = (): number => endings().length;

  /** The last request has ended by its caller's leaving, not by the time that a request may take to arrive. */
  async function expectEndedAsBroken(requests: number, what: string): Promise<void> {
    await expect.poll(requestsOver, { message: what }).toBe(requests);
    expect(endings().at(-1), what).toContain('"failureCode":"invalid_request"');
  }

  /** Were each of them to keep one of the account's 64 places, the last ones would be felt: 429 instead of 400. */
  async function expectRoom(after: string): Promise<void> {
    const probe = async (): Promise<string> =>
      `${after}: ${String((await service.post("/v1/responses", {})).status)}`;
    await expect.poll(probe).toBe(`${after}: 400`);
  }
});
