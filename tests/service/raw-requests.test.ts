import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { delta, finish, openGate, textAnswer } from "../doubles/scripted-deployment.ts";
import { processorMs, threadProcessorMs } from "../doubles/processor-clock.ts";
import { openRawConnection, requestHead, wholePost } from "./raw-connection.ts";
import { expectPlainRefusal, expectRefusal, shapeOf, withoutTrace } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";
import { untilKeySeen } from "./until-key-seen.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

const authorization = (): { readonly authorization: string } => ({
  authorization: `Bearer ${service.key}`,
});
const chat = formats[0];

describe("garbage on the socket", () => {
  it.each([
    ["a TLS greeting", Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01])],
    ["noise", Buffer.from(Array.from({ length: 500 }, (_, index) => (index * 7919) % 256))],
    ["zeros", Buffer.alloc(1_000)],
    ["an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["a space in a header's name", "GET / HTTP/1.1\r\nhost: x\r\na b: c\r\n\r\n"],
    [
      "two lengths",
      "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ],
    [
      "a length and chunks",
      "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a negative length", "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"],
    [
      "a huge length",
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: ${"9".repeat(30)}\r\n\r\n`,
    ],
    ["a line feed in a header", "GET / HTTP/1.1\r\nhost: x\r\na: b\nc: d\u0000\r\n\r\n"],
  ])("such as %s gets 400 and is closed", async (_name, bytes) => {
    await withoutTrace(service, async () => {
      using connection = await openRawConnection(service.url);
      connection.write(bytes);
      await connection.closed;
      expect(connection.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    });
  });

  it("of more than 32 KiB of headers gets 431", async () => {
    await withoutTrace(service, async () => {
      using connection = await openRawConnection(service.url);
      connection.write(requestHead("GET /", { x: "a".repeat(40_000) }));
      await connection.closed;
      expect(connection.text).toMatch(/^HTTP\/1\.1 431 /);
    });
  });

  it("in a chunked body is refused in the caller's format", async () => {
    for (const { path } of formats)
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        const framing = { ...authorization(), "transfer-encoding": "chunked" };
        const begun = `${requestHead(`POST ${path}`, framing)}3\r\n{"a\r\n`;
        await untilKeySeen(service, service.key, () => connection.write(begun));
        connection.write("zz\r\n");
        const answer = await connection.answer();
        expectPlainRefusal(answer, {
          code: "invalid_request",
          shape: shapeOf(path),
          says: /chunk/,
        });
        expect(answer.headers.get("connection")).toBe("close");
        await connection.closed;
      });
  });

  it("behind a request that is being answered does not get into its answer", async () => {
    const gate = openGate();
    service.deployment.answerNext(delta({ content: "one" }), gate.step, finish("stop"));
    using connection = await openRawConnection(service.url);
    connection.write(
      wholePost(chat.path, JSON.stringify({ ...chat.body, stream: true }), authorization()),
    );
    await connection.waitFor(/one/);
    connection.write("\u0000\u0001garbage\r\n\r\n");
    // Was written before this one was begun, and so is read before its answer.
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    gate.open();
    await Promise.race([connection.closed, connection.waitFor(/\[DONE\]/).catch(() => "")]);
    expect(connection.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect((await service.settledCredit()).held).toBe(0n);
  });

  it("that says of a path what none can be is answered like any other", async () => {
    for (const target of ["*", "http://elsewhere/v1/models", "/%00", "/..", "/v1/models/../x"]) {
      using connection = await openRawConnection(service.url);
      connection.write(requestHead(`GET ${target}`));
      const answer = await connection.answer();
      expect([200, 404]).toContain(answer.status);
      expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
    }
  });

  it("of unknown methods is refused", async () => {
    for (const [method, status] of [
      ["BREW", 400],
      ["PROPFIND", 405],
      ["CONNECT", null],
      ["TRACE", 405],
    ] as const)
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(requestHead(`${method} /v1/messages`, authorization()));
        if (status === null) await connection.closed;
        else expect((await connection.answer()).status, method).toBe(status);
      });
  });
});

describe("a request of another spelling", () => {
  it.each(["http", "HTTP", "https"])("has its path in an absolute %s address", async (scheme) => {
    using connection = await openRawConnection(service.url);
    connection.write(requestHead(`GET ${scheme}://elsewhere.example:8080/healthz?x=1`));
    const answer = await connection.answer();
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toEqual({ status: "ok" });
    connection.write(requestHead(`GET ${scheme}://elsewhere.example`));
    expect((await connection.answer()).status).toBe(200);
  });

  it("is refused with two hosts", async () => {
    await withoutTrace(service, async () => {
      using connection = await openRawConnection(service.url);
      connection.write("GET /healthz HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n");
      expectPlainRefusal(await connection.answer(), {
        code: "invalid_request",
        shape: "openai",
        says: /host/,
      });
    });
  });

  it.each(["gzip, chunked", "identity, chunked"])(
    "is refused with the transfer coding %s",
    async (coding) => {
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        const head = { ...authorization(), "transfer-encoding": coding };
        const body = JSON.stringify(chat.body);
        connection.write(requestHead(`POST ${chat.path}`, head));
        connection.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
        expectPlainRefusal(await connection.answer(), {
          code: "unsupported_media_type",
          shape: "openai",
          says: /transfer-encoding/,
        });
      });
    },
  );
});

describe("garbage while the key is looked up", () => {
  it("gets its 400, and nothing is logged as a fault of the service", async () => {
    const before = service.logLines.length;
    for (let tries = 0; tries < 5; tries += 1) {
      using connection = await openRawConnection(service.url);
      const framing = { ...authorization(), "transfer-encoding": "chunked" };
      // In one write: the parser meets the wrong chunk before the ledger has answered.
      connection.write(`${requestHead(`POST ${chat.path}`, framing)}zz\r\n`);
      const answer = await connection.answer();
      expectPlainRefusal(answer, { code: "invalid_request", shape: "openai", says: /chunk/ });
      await connection.closed;
    }
    await service.settledCredit();
    const faults = service.logLines.slice(before).filter((line) => line.includes('"internal"'));
    expect(faults).toEqual([]);
  });
});

describe("an upgrade", () => {
  const upgrade = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
  };

  it("of GET /v1/responses is 426, so that an agent falls back to POST at once", async () => {
    await withoutTrace(service, async () => {
      using connection = await openRawConnection(service.url);
      connection.write(requestHead("GET /v1/responses", { ...authorization(), ...upgrade }));
      expectPlainRefusal(await connection.answer(), {
        code: "upgrade_required",
        shape: "openai",
        says: /send POST \/v1\/responses with `stream: true`/,
      });
    });
  });

  it("to HTTP/2 beside an ordinary request is ignored", async () => {
    using connection = await openRawConnection(service.url);
    const h2c = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "" };
    connection.write(
      wholePost(chat.path, JSON.stringify(chat.body), { ...authorization(), ...h2c }),
    );
    expect((await connection.answer()).status).toBe(200);
    await service.settledCredit();
  });
});

describe("Expect: 100-continue", () => {
  const text = JSON.stringify(chat.body);
  const head = (headers: Record<string, string | number>): string =>
    requestHead(`POST ${chat.path}`, {
      "content-length": text.length,
      "content-type": "application/json",
      ...headers,
    });

  it("is told to go on once the key is good", async () => {
    using connection = await openRawConnection(service.url);
    connection.write(head({ ...authorization(), expect: "100-continue" }));
    expect((await connection.answer()).status).toBe(100);
    connection.write(text);
    expect((await connection.answer()).status).toBe(200);
    await service.settledCredit();
  });

  it("hears of a bad key, a bad type or a bad path before it sends anything", async () => {
    for (const [headers, status] of [
      [{ authorization: "Bearer no" }, 401],
      [{ ...authorization(), "content-type": "text/plain" }, 415],
    ] as const)
      await withoutTrace(service, async () => {
        using connection = await openRawConnection(service.url);
        connection.write(head({ expect: "100-continue", ...headers }));
        const answer = await connection.answer();
        expect(answer.status).toBe(status);
        expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
      });
  });

  it("of something else is ignored, with an id like every answer", async () => {
    using connection = await openRawConnection(service.url);
    connection.write(head({ ...authorization(), expect: "more" }) + text);
    const answer = await connection.answer();
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
    await service.settledCredit();
  });
});

describe("pipelined requests", () => {
  it("are answered in order, each in its own format", async () => {
    using connection = await openRawConnection(service.url);
    const posts = formats.map(({ path, body }, index) => {
      service.deployment.answerNext(...textAnswer(`answer ${String(index)}`));
      return wholePost(path, JSON.stringify(body), authorization());
    });
    const bad = wholePost("/v1/messages", "{", authorization());
    connection.write([...posts, bad, requestHead("GET /v1/models")].join(""));
    const texts: string[] = [];
    for (const status of [200, 200, 200, 400, 200]) {
      const answer = await connection.answer();
      expect(answer.status).toBe(status);
      texts.push(answer.text);
    }
    expect(texts[0]).toContain('"object":"chat.completion"');
    expect(texts[1]).toContain('"object":"response"');
    expect(texts[2]).toContain('"type":"message"');
    expect(texts[3]).toContain('"type":"error"');
    expect(texts[4]).toContain('"object":"list"');
    await service.settledCredit();
  });

  it("behind a stream are cancelled with it when the client leaves", async () => {
    const { key, accountId } = await service.newKey("10");
    const before = (await service.credit(accountId)).balance;
    const first = service.deployment.requests.length;
    service.deployment.answerNext(delta({ role: "assistant" }), { type: "hang" });
    service.deployment.answerNext(delta({ role: "assistant" }), { type: "hang" });
    using connection = await openRawConnection(service.url);
    const post = wholePost(chat.path, JSON.stringify({ ...chat.body, stream: true }), {
      authorization: `Bearer ${key}`,
    });
    connection.write(post + post);
    const [one, two] = [
      await service.deployment.request(first),
      await service.deployment.request(first + 1),
    ];
    const lines = service.logLines.length;
    connection.socket.resetAndDestroy();
    for (const request of [one, two]) expect(await request.ended).toMatchObject({ byPeer: true });
    expect((await service.settledCredit(accountId)).balance).toBe(before);
    const ended = (): number =>
      service.logLines.slice(lines).filter((line) => line.includes('"event":"request"')).length;
    await expect.poll(ended).toBe(2);
  });
});

describe("failures of the deployment", () => {
  it.each(formats)("reach a client of $name as the table says", async ({ path, body }) => {
    const shape = shapeOf(path);
    for (const [steps, code, says] of [
      [
        status(400, "maximum context length is 4096 tokens. You requested 5000 tokens"),
        "input_too_large",
        /./,
      ],
      [status(422, "bad"), "refused_by_deployment", /./],
      [status(500, "bad"), "deployment_failed", /./],
      [status(503, "bad"), "overloaded", /./],
      [status(429, "bad"), "overloaded", /./],
      [[delta({ content: "half" }), { type: "close" }], "deployment_failed", /./],
      [[{ type: "write", bytes: "data: {nonsense\n\n" }], "deployment_failed", /./],
      [[delta({ content: "half" })], "deployment_failed", /./],
    ] as const) {
      service.deployment.answerNext(...steps);
      const before = (await service.settledCredit()).balance;
      await expectRefusal(await service.post(path, body), { code, shape, says });
      expect(await service.settledCredit()).toEqual({ balance: before, held: 0n });
    }
  });

  it("are 504 when it says nothing in time, 503 when nobody listens", async () => {
    await using impatient = await startService({
      environment: { TRIBUTARY_DEPLOYMENT_FIRST_EVENT_MS: "50" },
    });
    impatient.deployment.answerAlways({ type: "hang" });
    for (const { path, body } of formats)
      await expectRefusal(await impatient.post(path, body), {
        code: "deployment_timeout",
        shape: shapeOf(path),
        says: /Try again/,
      });
    await impatient.deployment[Symbol.asyncDispose]();
    for (const { path, body } of formats)
      await expectRefusal(await impatient.post(path, body), {
        code: "overloaded",
        shape: shapeOf(path),
        says: /Try again/,
      });
    expect((await impatient.settledCredit()).held).toBe(0n);
  });

  function status(code: number, message: string) {
    return [
      { type: "headers", status: code, headers: { "content-type": "application/json" } },
      { type: "write", bytes: JSON.stringify({ error: { message, code } }) },
    ] as const;
  }
});

describe("4 MiB of one letter to count_tokens", () => {
  it("is counted in a moment, and delays no chunk of another stream", async () => {
    const chunks = 150;
    const body = Buffer.from(
      JSON.stringify({ messages: [{ role: "user", content: "a".repeat(4 * 1024 * 1024 - 60) }] }),
    );
    const pause = {
      type: "wait",
      get until() {
        // Real time: what is looked at is a paced stream beside a real thread that counts.
        return sleep(10);
      },
    } as const;
    const steps = Array.from({ length: chunks }, (_, index) => [
      delta({ content: `<${String(index)}>` }),
      pause,
    ]).flat();
    service.deployment.answerNext(...steps, finish("stop"));
    const stream = await service.post(chat.path, { ...chat.body, stream: true });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let worstMs = 0;
    let lastMs = threadProcessorMs();
    const counting = [0, 1, 2].map(async () => {
      const startMs = processorMs();
      const counted = await service.post("/v1/messages/count_tokens", body);
      expect(counted.status).toBe(200);
      const { input_tokens: tokens } = (await counted.json()) as { input_tokens: number };
      expect(tokens).toBeGreaterThan((4 * 1024 * 1024) / 8);
      return processorMs() - startMs;
    });
    for (;;) {
      const read = await reader?.read();
      if (read?.value === undefined) break;
      text += read.value;
      worstMs = Math.max(worstMs, threadProcessorMs() - lastMs);
      lastMs = threadProcessorMs();
    }
    for (let index = 0; index < chunks; index += 1) expect(text).toContain(`<${String(index)}>`);
    const tookMs = await Promise.all(counting);
    // One after another on one thread, the vocabulary loaded first; a merge of the whole would take minutes.
    expect(Math.max(...tookMs)).toBeLessThan(8_000);
    // A count in the event loop would take at least the 400 ms that it may of this thread's processor.
    expect(worstMs).toBeLessThan(390);
  });
});
