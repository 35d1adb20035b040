import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import { type AddressInfo, connect, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { openReaderWatch } from "../../src/http/reader-watch.ts";
import { type ManualTimers, openManualTimers } from "../doubles/manual-timers.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Responses to `count` requests on one connection, whose client reads only when the test lets it. */
async function openResponses(count: number): Promise<{
  readonly responses: readonly ServerResponse[];
  readonly client: Socket;
  readonly timers: ManualTimers;
}> {
  const responses: ServerResponse[] = [];
  const timers = openManualTimers();
  const all = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    response.on("error", () => undefined);
    responses.push(response);
    if (responses.length === count) all.resolve();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => undefined);
  cleanups.push(() => {
    client.destroy();
    server.close();
    server.closeAllConnections();
  });
  client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(count));
  await all.promise;
  return { responses, client, timers };
}

const watch = (response: ServerResponse, timers: ManualTimers) =>
  openReaderWatch(response, response.req.socket, timers);

/** More than the kernel takes on both sides. */
const large = Buffer.alloc(64 * 1024 * 1024, "x");

describe("a reader that is watched", () => {
  it("has stopped when it takes no byte of what waits for the time it has", async () => {
    const { responses, timers } = await openResponses(1);
    const [response] = responses as [ServerResponse];
    watch(response, timers).allow(60_000);
    response.end(large);
    const closed = once(response, "close");
    // The first look finds what the kernel has taken meanwhile.
    timers.advance(60_000);
    expect(response.destroyed).toBe(false);
    timers.advance(15_000);
    await closed;
    expect(response.writableFinished).toBe(false);
    expect(timers.waiting).toBe(0);
  });

  it("is left alone while it takes a byte now and then", async () => {
    const { responses, timers } = await openResponses(1);
    const [response] = responses as [ServerResponse];
    // Counts as those of a connection, moved by hand: when the kernel takes how much is nothing that a test can know.
    const handle = { bytesWritten: 1_000_000, writeQueueSize: 1_000_000 };
    const ends: string[] = [];
    const destroy = (): void => void ends.push("destroyed");
    const socket = Object.assign(new Socket(), { _handle: handle, destroy });
    openReaderWatch(response, socket, timers).allow(60_000);
    for (let bytes = 0; bytes < 20; bytes += 1) {
      timers.advance(59_999);
      expect(ends).toEqual([]);
      handle.writeQueueSize -= 1;
    }
    // More that is written is nothing that was taken.
    for (let more = 0; more < 5; more += 1) {
      handle.bytesWritten += 10;
      handle.writeQueueSize += 10;
      timers.advance(15_001);
    }
    expect(ends).toEqual(["destroyed"]);
  });

  it("has nothing to take while an answer is being made, however long that is", async () => {
    const { responses, timers } = await openResponses(1);
    const [response] = responses as [ServerResponse];
    watch(response, timers).allow(60_000);
    timers.advance(3_600_000);
    expect(response.destroyed).toBe(false);
    response.write("x");
    await expect.poll(() => response.writableLength).toBe(0);
    timers.advance(3_600_000);
    expect(response.destroyed).toBe(false);
    response.end();
    await once(response, "close");
    expect(timers.waiting).toBe(0);
  });

  it("has as long as was said last", async () => {
    const { responses, timers } = await openResponses(1);
    const [response] = responses as [ServerResponse];
    const reader = watch(response, timers);
    reader.allow(600_000);
    response.write(large);
    timers.advance(400_000);
    reader.allow(60_000);
    expect(timers.waiting).toBe(1);
    timers.advance(59_999);
    expect(response.req.socket.destroyed).toBe(false);
    timers.advance(1);
    expect(response.req.socket.destroyed).toBe(true);
  });

  it("ends with its connection, also where its answer waits behind others", async () => {
    const { responses, timers } = await openResponses(3);
    const closed = responses.map((response) => once(response, "close"));
    for (const response of responses) response.end(large);
    const last = responses.at(-1) as ServerResponse;
    watch(last, timers).allow(60_000);
    timers.advance(75_000);
    await Promise.all(closed);
  });
});
