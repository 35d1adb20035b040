import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openRawConnection, requestHead, wholePost } from "./raw-connection.ts";
import { expectPlainRefusal, shapeOf, withoutTrace } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const { receiveMs, lingerMs, readerStallAfterEndMs } = vi.hoisted(() => ({
  receiveMs: 450,
  lingerMs: 200,
  readerStallAfterEndMs: 200,
}));

// Everything is as in the service but durations, which are a minute and seconds there.
vi.mock("../../src/limits.ts", async (load) => {
  const real = await load<{ readonly limits: object }>();
  return {
    limits: { ...real.limits, requestReceiveMs: receiveMs, lingerMs, readerStallAfterEndMs },
  };
});

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

/** One byte after another, slowly, until the other side has had enough. */
async function drip(connection: Awaited<ReturnType<typeof openRawConnection>>, text: string) {
  for (const character of text) {
    if (connection.socket.destroyed) return;
    connection.write(character);
    await sleep(40);
  }
}

const head = (path: string, headers: Record<string, string | number>): string =>
  requestHead(`POST ${path}`, { authorization: `Bearer ${service.key}`, ...headers });

describe("a slow caller", () => {
  it("whose header block does not end is closed with a bare 408", async () => {
    await withoutTrace(service, async () => {
      using connection = await openRawConnection(service.url);
      await drip(connection, `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(200)}`);
      await connection.closed;
      expect(connection.text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
      expect(connection.text).toMatch(/\r\n\r\n$/);
    });
  });

  it.each([...formats.map(({ path }) => path), "/v1/messages/count_tokens"])(
    "whose body for %s does not end gets a 408 in its own format, and the connection is closed",
    async (path) => {
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        const startMs = performance.now();
        connection.write(head(path, { "content-length": 1_000 }));
        const dripping = drip(connection, `{"messages":[${" ".repeat(500)}`);
        const answer = await connection.answer();
        expectPlainRefusal(answer, {
          code: "request_timeout",
          shape: shapeOf(path),
          says: /did not arrive within 1 seconds. Send it without pauses/,
        });
        expect(answer.headers.get("connection")).toBe("close");
        expect(performance.now() - startMs).toBeGreaterThan(receiveMs - 50);
        await connection.closed;
        await dripping;
      });
    },
  );

  it("whose body stops half way is not waited for longer, and neither is one in chunks", async () => {
    for (const framing of [{ "content-length": 100 }, { "transfer-encoding": "chunked" }]) {
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(head("/v1/responses", framing));
        connection.write("content-length" in framing ? '{"input":' : '9\r\n{"input":\r\n');
        expect((await connection.answer()).status).toBe(408);
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
      await slow.closed;

      using endless = await openRawConnection(service.url);
      endless.write(head("/v1/messages", { ...wrong, "content-length": 1e12 }));
      expect((await endless.answer()).status).toBe(401);
      const piece = Buffer.alloc(1024 * 1024, 32);
      let sent = 0;
      while (!endless.socket.destroyed && sent < 200) {
        sent += 1;
        if (!endless.socket.write(piece)) await sleep(1);
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
    const closed = new Promise<void>((resolve) => connection.socket.once("error", () => resolve()));
    // A reset shows with the next write only: a reader that is paused sees no end.
    const timer = setInterval(() => connection.write("x"), 20);
    await Promise.race([closed, connection.closed]);
    clearInterval(timer);
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
    const cuts = [0, 10, headEnd - 2, headEnd, headEnd, headEnd, headEnd + 1, text.length - 1];
    for (const cut of cuts)
      for (const leave of ["end", "resetAndDestroy"] as const)
        // Before, while and after the key is looked at.
        for (const afterMs of [0, 1, 2, 3, 5])
          await withoutTrace(service, async () => {
            using connection = await openRawConnection(service.url);
            const over = requestsOver();
            connection.write(text.slice(0, cut));
            if (afterMs > 0) await sleep(afterMs);
            connection.socket[leave]();
            await connection.closed;
            const what = `${leave} at ${String(cut)} after ${String(afterMs)} ms`;
            // A reset may overtake the head; one that was taken up must not be worked on for a minute.
            const begun = cut >= headEnd && (leave === "end" || afterMs === 5);
            if (begun) await expectEndedAsBroken(over + 1, what);
            await expectRoom(what);
          });
  });

  it("in a broken chunk leaves no place taken", async () => {
    for (const afterMs of [0, 1, 2, 3, 5])
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(head("/v1/responses", { "transfer-encoding": "chunked" }));
        if (afterMs > 0) await sleep(afterMs);
        const over = requestsOver();
        connection.write("zz\r\n");
        expect((await connection.answer()).status).toBe(400);
        await expectEndedAsBroken(over + 1, "a broken chunk");
        await expectRoom(`a broken chunk after ${String(afterMs)} ms`);
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
