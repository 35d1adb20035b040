import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { openReadTurns } from "../../src/http/read-turns.ts";
import { limits } from "../../src/limits.ts";
import { openRawConnection, requestHead } from "../service/raw-connection.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server whose connections are read in turns. By its clock each slice takes a whole turn. */
async function openServer(handler: Handler): Promise<{ readonly url: string } & AsyncDisposable> {
  let nowMs = 0;
  const turns = openReadTurns(() => (nowMs += limits.readTurnMs));
  const server = createServer((request, response) => {
    turns.follow(request, response);
    handler(request, response);
  });
  server.on("connection", (socket) => turns.share(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** The most of something that happened between two turns of the event loop. */
function watchTurns(): { count(): void; readonly most: number } & Disposable {
  let [inTurn, most, open] = [0, 0, true];
  const turn = (): void => {
    inTurn = 0;
    if (open) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    count() {
      inTurn += 1;
      most = Math.max(most, inTurn);
    },
    get most() {
      return most;
    },
    [Symbol.dispose]: () => void (open = false),
  };
}

const chunked = requestHead("POST /", { "transfer-encoding": "chunked" });
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("what one read brings", () => {
  it("as chunks of one byte is parsed in slices, a turn of the event loop each", async () => {
    using turns = watchTurns();
    await using server = await openServer((request, response) => {
      request.on("data", () => turns.count());
      request.on("end", () => response.end());
    });
    using connection = await openRawConnection(server.url);
    connection.write(`${chunked}${"1\r\n \r\n".repeat(5_000)}0\r\n\r\n`);
    expect((await connection.answer()).status).toBe(200);
    // Two lines a chunk; a slice in the turn in which it comes, and one in the next.
    expect(turns.most).toBeLessThanOrEqual(limits.readSliceLines);
  });

  it("leaves its turns to other connections", async () => {
    let pieces = 0;
    const piecesSeen: number[] = [];
    await using server = await openServer((request, response) => {
      request.on("data", () => (pieces += 1));
      request.on("end", () => {
        if (request.method === "GET") piecesSeen.push(pieces);
        response.end();
      });
    });
    using greedy = await openRawConnection(server.url);
    using other = await openRawConnection(server.url);
    greedy.write(`${chunked}${"1\r\n \r\n".repeat(10_000)}0\r\n\r\n`);
    other.write(requestHead("GET /"));
    await other.answer();
    await greedy.answer();
    expect(pieces).toBe(10_000);
    expect(piecesSeen).toEqual([expect.toSatisfy((seen: number) => seen < 5_000)]);
  });

  it("as one long body comes whole, whatever lines it has", async () => {
    const bodies: Buffer[] = [];
    await using server = await openServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        bodies.push(Buffer.concat(parts));
        response.end();
      });
    });
    using connection = await openRawConnection(server.url);
    for (const lineLength of [0, 1, 30, 5_000]) {
      const body = Buffer.from(Uint8Array.from({ length: 150_000 }, (_, at) => 32 + (at % 90)));
      for (let at = lineLength; at < body.byteLength; at += lineLength + 1) body[at] = 10;
      connection.write(requestHead("POST /", { "content-length": body.byteLength }));
      connection.write(body);
      await connection.answer();
      expect(bodies.pop()?.equals(body)).toBe(true);
    }
  });
});

describe("a body", () => {
  it("is not read beyond the slice of its head before its handler asks for it", async () => {
    const begun = Promise.withResolvers<[IncomingMessage, ServerResponse]>();
    await using server = await openServer((...exchange) => begun.resolve(exchange));
    using connection = await openRawConnection(server.url);
    connection.write(`${chunked}${"1\r\n \r\n".repeat(1_000)}0\r\n\r\n`);
    const [request, response] = await begun.promise;
    for (let turn = 0; turn < 200; turn += 1) await nextTurn();
    expect(request.readableLength).toBeLessThanOrEqual(limits.readSliceLines);
    let bytes = 0;
    request.on("data", (piece: Buffer) => (bytes += piece.byteLength));
    await once(request, "end");
    expect(bytes).toBe(1_000);
    response.end();
    expect((await connection.answer()).status).toBe(200);
  });
});

describe("requests one behind the other", () => {
  it("wait while so many before them have no answer, and are all answered in their order", async () => {
    const open: [IncomingMessage, ServerResponse][] = [];
    let begun = 0;
    let answering = false;
    await using server = await openServer((request, response) => {
      begun += 1;
      if (answering) response.end(request.url);
      else open.push([request, response]);
    });
    using connection = await openRawConnection(server.url);
    connection.write(
      Array.from({ length: 500 }, (_, at) => requestHead(`GET /${String(at)}`)).join(""),
    );
    await expect.poll(() => begun).toBeGreaterThanOrEqual(limits.pipelinedRequestsMax);
    for (let turn = 0; turn < 200; turn += 1) await nextTurn();
    // The last slice may have brought a few more.
    expect(begun).toBeLessThan(limits.pipelinedRequestsMax + limits.readSliceLines / 3);
    answering = true;
    for (const [request, response] of open) response.end(request.url);
    for (let at = 0; at < 500; at += 1)
      expect((await connection.answer()).text).toBe(`/${String(at)}`);
  });

  it("with long answers wait for their reader, and their connection's end comes after them", async () => {
    const answer = "x".repeat(100_000);
    await using server = await openServer((_request, response) => void response.end(answer));
    using connection = await openRawConnection(server.url);
    connection.socket.pause();
    connection.socket.end(requestHead("GET /").repeat(100));
    for (let turn = 0; turn < 200; turn += 1) await nextTurn();
    connection.socket.resume();
    for (let at = 0; at < 100; at += 1) expect((await connection.answer()).text).toBe(answer);
    await connection.closed;
  });

  it("end with a connection that breaks off", async () => {
    const closed: Promise<unknown>[] = [];
    await using server = await openServer(
      (_request, response) => void closed.push(once(response, "close")),
    );
    using connection = await openRawConnection(server.url);
    connection.write(requestHead("GET /").repeat(100));
    await expect.poll(() => closed.length).toBeGreaterThanOrEqual(limits.pipelinedRequestsMax);
    connection.socket.resetAndDestroy();
    await Promise.all(closed);
  });
});
