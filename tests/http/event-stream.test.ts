import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { type EventStream, openEventStream } from "../../src/http/event-stream.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A response over a real socket, and a client that reads nothing until it is told to. */
async function openPair(): Promise<{
  readonly response: ServerResponse;
  readonly read: () => void;
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
  outgoing.on("response", (incoming) => {
    incoming.on("error", () => undefined);
    incoming.pause();
    read = () => void incoming.resume();
  });
  let read: () => void = () => undefined;
  outgoing.end();
  const [, response] = (await served) as [unknown, ServerResponse];
  response.on("error", () => undefined);
  return { response, read: () => read() };
}

function open(
  response: ServerResponse,
  stallMs: number,
): { readonly stream: EventStream; readonly calls: string[] } {
  const calls: string[] = [];
  const source = {
    pause: () => void calls.push("pause"),
    resume: () => void calls.push("resume"),
  };
  const keepalive = (): string => ": ping\n\n";
  const stream = openEventStream(response, { source, keepaliveMs: 60_000, keepalive, stallMs });
  return { stream, calls };
}

describe("a stream whose reader stops", () => {
  it("pauses its source once, and resumes it when the reader goes on", async () => {
    const { response, read } = await openPair();
    const { stream, calls } = open(response, 60_000);
    stream.open("data: first\n\n");
    const piece = `data: ${"x".repeat(256 * 1024)}\n\n`;
    for (let pieces = 0; pieces < 40; pieces += 1) stream.write(piece);
    expect(calls).toEqual(["pause"]);
    await expect.poll(() => response.headersSent).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 50));
    read();
    await expect.poll(() => calls, { timeout: 10_000 }).toEqual(["pause", "resume"]);
    stream.end("data: last\n\n");
  });

  it("counts the reader as gone when it never goes on", async () => {
    const { response } = await openPair();
    const { stream } = open(response, 30);
    stream.open("data: first\n\n");
    const closed = once(response, "close");
    for (let pieces = 0; pieces < 40; pieces += 1) stream.write("x".repeat(512 * 1024));
    await closed;
    expect(response.writableFinished).toBe(false);
  });
});
