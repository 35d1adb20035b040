import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { type EventStream, openEventStream } from "../../src/http/event-stream.ts";
import { type ManualTimers, openManualTimers } from "../doubles/manual-timers.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A response over a real socket, and a client that reads nothing until the test lets it. */
async function openPair(): Promise<{
  readonly response: ServerResponse;
  /** Begins to read once the head is there; resolves with what was read so far. */
  readonly read: () => Promise<() => string>;
}> {
  const server = createServer();
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ host: "127.0.0.1", port });
  outgoing.on("error", () => undefined);
  const served = once(server, "request");
  const answered = new Promise<IncomingMessage>((resolve) => outgoing.on("response", resolve));
  outgoing.end();
  const [, response] = (await served) as [unknown, ServerResponse];
  response.on("error", () => undefined);
  const read = async (): Promise<() => string> => {
    const incoming = await answered;
    let text = "";
    incoming.on("error", () => undefined);
    incoming.on("data", (piece: Buffer) => {
      text += piece.toString("latin1");
    });
    return () => text;
  };
  return { response, read };
}

const keepaliveMs = 10_000;

function open(response: ServerResponse): {
  readonly stream: EventStream;
  readonly calls: string[];
  readonly timers: ManualTimers;
} {
  const timers = openManualTimers();
  const { monotonicMs } = timers;
  const calls: string[] = [];
  const source = {
    pause: () => void calls.push("pause"),
    resume: () => void calls.push("resume"),
  };
  const keepalive = (): string => {
    calls.push("keepalive");
    return ": ping\n\n";
  };
  const parts = { source, keepaliveMs, keepalive, timers, monotonicMs };
  return { stream: openEventStream(response, parts), calls, timers };
}

/** Everything that a server sends on a connection that opens with `asked`, each request answered by `serve`. */
async function wire(asked: string, serve: (stream: EventStream) => void): Promise<string> {
  const server = createServer((_request, response) => serve(open(response).stream));
  cleanups.push(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(asked);
  return await text(socket);
}

/** What follows the headers of each answer. */
function bodiesOf(answers: string): readonly string[] {
  return answers
    .split(/(?=HTTP\/1\.1 200 OK\r\n)/u)
    .map((answer) => answer.slice(answer.indexOf("\r\n\r\n") + 4));
}

describe("a stream on the wire", () => {
  const serve = (stream: EventStream): void => {
    stream.open("data: open\n\n");
    stream.write("");
    stream.write("data: \u00e9 \u4e16 😀\n\n");
    stream.end("data: [DONE]\n\n");
  };
  const chunks =
    "c\r\ndata: open\n\n\r\n" +
    "13\r\ndata: \u00e9 \u4e16 😀\n\n\r\n" +
    "e\r\ndata: [DONE]\n\n\r\n" +
    "0\r\n\r\n";

  it("is made of one chunk a write, counted in bytes", async () => {
    const answer = await wire("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", serve);
    expect(answer).toMatch(/^transfer-encoding: chunked\r$/imu);
    expect(bodiesOf(answer)).toEqual([chunks]);
  });

  it("leaves its connection to the next request, also to one that is there already", async () => {
    const first = "GET /1 HTTP/1.1\r\nhost: a\r\n\r\n";
    const last = "GET /2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    expect(bodiesOf(await wire(first + last, serve))).toEqual([chunks, chunks]);
  });

  it("waits for the answer before it on its connection", async () => {
    const streams: EventStream[] = [];
    const asked =
      "GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    const answers = await wire(asked, (stream) => {
      streams.push(stream);
      const [first, second] = streams;
      if (second === undefined) return;
      second.open("second\n");
      first?.open("first\n");
      for (let round = 0; round < 3; round += 1) {
        second.write("second\n");
        first?.write("first\n");
      }
      second.end("");
      first?.end("");
    });
    expect(bodiesOf(answers)).toEqual([
      `${"6\r\nfirst\n\r\n".repeat(4)}0\r\n\r\n`,
      `${"7\r\nsecond\n\r\n".repeat(4)}0\r\n\r\n`,
    ]);
  });

  it("may end without a last frame", async () => {
    const answer = await wire(
      "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
      (stream) => {
        stream.open("x");
        stream.end("");
      },
    );
    expect(bodiesOf(answer)).toEqual(["1\r\nx\r\n0\r\n\r\n"]);
  });

  it("comes without chunks to a client that does not know them", async () => {
    const answer = await wire("GET / HTTP/1.0\r\n\r\n", serve);
    expect(answer).not.toMatch(/^transfer-encoding/imu);
    expect(bodiesOf(answer)).toEqual(["data: open\n\ndata: \u00e9 \u4e16 😀\n\ndata: [DONE]\n\n"]);
  });
});

/** What has been written to the connection of a response so far, one text a write. */
function writesOf(response: ServerResponse): string[] {
  const writes: string[] = [];
  const { socket } = response;
  if (socket === null) throw new Error("the response has no connection");
  const write = socket.write.bind(socket);
  socket.write = (text: string): boolean => {
    writes.push(text);
    return write(text);
  };
  return writes;
}

/** A stream whose head is sent, and what it writes from then on. */
async function openBegun(): Promise<{
  readonly stream: EventStream;
  readonly response: ServerResponse;
  readonly writes: readonly string[];
  readonly calls: readonly string[];
}> {
  const { response } = await openPair();
  const { calls, stream } = open(response);
  stream.open("data: first\n\n");
  await expect.poll(() => response.writableLength).toBe(0);
  return { stream, response, writes: writesOf(response), calls };
}

/** The rest of this turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("streams that write in one turn of the event loop", () => {
  it("are sent one straight after another when the turn has worked off what it found, each with one write", async () => {
    const [one, other] = [await openBegun(), await openBegun()];
    one.stream.write("a");
    other.stream.write("b");
    one.stream.write("cd");
    expect([one.writes, other.writes]).toEqual([[], []]);
    await turn();
    expect([one.writes, other.writes]).toEqual([["1\r\na\r\n2\r\ncd\r\n"], ["1\r\nb\r\n"]]);
    one.stream.write("e");
    await turn();
    expect(one.writes.slice(1)).toEqual(["1\r\ne\r\n"]);
  });

  it("do not wait for more than so many of them, nor for more of one than so much", async () => {
    const all = [];
    for (let at = 0; at < limits.answersHeldMax; at += 1) all.push(await openBegun());
    for (const { stream } of all.slice(1)) stream.write("a");
    expect(all.map(({ writes }) => writes.length)).toEqual(all.map(() => 0));
    all[0]?.stream.write("a");
    expect(all.map(({ writes }) => writes.length)).toEqual(all.map(() => 1));
    const long = await openBegun();
    long.stream.write("x".repeat(limits.chunksHeldCharactersMax));
    expect(long.writes).toHaveLength(1);
    await turn();
    expect(long.writes).toHaveLength(1);
  });

  it("send what they hold back with their last frames, and nothing when they are gone", async () => {
    const [ending, gone] = [await openBegun(), await openBegun()];
    const errors: unknown[] = [];
    gone.response.on("error", (error) => errors.push(error));
    ending.stream.write("a");
    ending.stream.end("b");
    gone.stream.write("a");
    gone.response.destroy();
    await turn();
    await turn();
    expect(ending.writes.join("")).toBe("1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
    expect([gone.writes, errors]).toEqual([[], []]);
  });

  it("pause their source when what they hold back no longer fits", async () => {
    const { calls, response, stream } = await openBegun();
    stream.write("a");
    Object.defineProperty(response, "writableLength", {
      value: limits.streamBufferedBytesMax + 1,
    });
    expect(calls).toEqual([]);
    await turn();
    expect(calls).toEqual(["pause"]);
  });
});

describe("a stream whose reader stops", () => {
  it("pauses its source once, and resumes it when the reader goes on", async () => {
    const { response, read } = await openPair();
    const { stream, calls } = open(response);
    stream.open("data: first\n\n");
    const piece = `data: ${"x".repeat(256 * 1024)}\n\n`;
    for (let pieces = 0; pieces < 40; pieces += 1) stream.write(piece);
    expect(calls).toEqual(["pause"]);
    await read();
    await expect.poll(() => calls).toEqual(["pause", "resume"]);
    stream.end("data: last\n\n");
  });

  it("resumes it too where one chunk alone, on a connection that was empty, was the reason", async () => {
    const { response, read } = await openPair();
    const { stream, calls } = open(response);
    stream.open("data: first\n\n");
    await expect.poll(() => response.writableLength).toBe(0);
    stream.write("x".repeat(16 * 1024 * 1024));
    expect(calls).toEqual(["pause"]);
    await read();
    await expect.poll(() => calls).toEqual(["pause", "resume"]);
    stream.end("");
  });

  it("sends it no keepalives, which would only fill memory, until it goes on", async () => {
    const { response, read } = await openPair();
    const { calls, stream, timers } = open(response);
    stream.open("data: first\n\n");
    for (let pieces = 0; pieces < 40; pieces += 1) stream.write("x".repeat(256 * 1024));
    timers.advance(10 * keepaliveMs);
    expect(calls).toEqual(["pause"]);
    await read();
    await expect.poll(() => calls).toEqual(["pause", "resume"]);
    timers.advance(keepaliveMs);
    expect(calls).toEqual(["pause", "resume", "keepalive"]);
    stream.end("");
  });
});

describe("a stream of which the reader takes everything in time", () => {
  it.each([
    ["at the bound of what may wait", limits.streamBufferedBytesMax, []],
    ["beyond it", limits.streamBufferedBytesMax + 1, ["pause"]],
  ])("pauses its source only beyond the bound: %s", async (_what, waiting, told) => {
    const { response } = await openPair();
    const { calls, stream } = open(response);
    stream.open("data: first\n\n");
    Object.defineProperty(response, "writableLength", { value: waiting });
    stream.write("data: second\n\n");
    // Node tells so also where nothing was paused.
    if (told.length === 0) response.emit("drain");
    expect(calls).toEqual(told);
    stream.stop();
  });
});

describe("a response that is gone", () => {
  it("hears nothing more, and no timer is set for it", async () => {
    const { response } = await openPair();
    const errors: unknown[] = [];
    response.on("error", (error) => errors.push(error));
    const { stream, timers } = open(response);
    stream.open("data: first\n\n");
    response.destroy();
    const waiting = response.writableLength;
    stream.write("data: more\n\n");
    stream.end("data: last\n\n");
    // Node would keep what is written to it.
    expect([response.writableLength, response.writableEnded]).toEqual([waiting, false]);
    const other = await openPair();
    other.response.destroy();
    const late = open(other.response);
    late.stream.open("data: first\n\n");
    await new Promise(setImmediate);
    expect(errors).toEqual([]);
    expect(other.response.headersSent).toBe(false);
    expect([timers.waiting, late.timers.waiting]).toEqual([0, 0]);
  });
});

it("a stream is opened once, and says nothing before", async () => {
  const { response, read } = await openPair();
  const { stream, timers } = open(response);
  stream.write("data: early\n\n");
  stream.open("data: first\n\n");
  stream.open("data: again\n\n");
  expect(timers.waiting).toBe(1);
  stream.end("");
  await expect.poll(await read()).toBe("data: first\n\n");
});

describe("a stream in a silence", () => {
  it("sends a keepalive when the last write is as long ago as the silence may be, and again", async () => {
    const { response, read } = await openPair();
    const { calls, stream, timers } = open(response);
    stream.open("data: first\n\n");
    timers.advance(keepaliveMs - 1);
    stream.write("data: second\n\n");
    timers.advance(keepaliveMs - 1);
    expect(calls).toEqual([]);
    timers.advance(1);
    expect(calls).toEqual(["keepalive"]);
    timers.advance(keepaliveMs);
    expect(calls).toEqual(["keepalive", "keepalive"]);
    stream.end("data: last\n\n");
    expect(timers.waiting).toBe(0);
    const text = await read();
    const all = "data: first\n\ndata: second\n\n: ping\n\n: ping\n\ndata: last\n\n";
    await expect.poll(text).toBe(all);
  });

  it("whose client has left says nothing more, and has no timer left", async () => {
    const { response } = await openPair();
    const { stream, timers } = open(response);
    stream.open("data: first\n\n");
    response.destroy();
    timers.advance(3 * keepaliveMs);
    stream.write("data: more\n\n");
    stream.stop();
    expect(timers.waiting).toBe(0);
  });
});
