import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type Connection,
  Connections,
} from "../../../src/deployment/openai-compatible/connections.ts";

/** Connections to a server that says for how long it keeps its own; 0: it does not say. */
async function openPair(
  serve: RequestListener = (_request, response) => response.end("x"),
  keepAliveMs = 0,
): Promise<Connections> {
  const server = createServer({ keepAliveTimeout: keepAliveMs }, serve).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const connections = new Connections(`http://127.0.0.1:${String(port)}`, 1_000);
  onTestFinished(async () => {
    await connections.close();
    server.close();
  });
  return connections;
}

/** The clock by which undici ends what is silent, or is not there in time. */
const undiciTimers = createRequire(import.meta.url)("undici/lib/util/timers.js") as {
  tick(ms: number): void;
};

/** A request as the deployment makes it, up to the end of its answer. */
async function ask(connection: Connection): Promise<string> {
  const { body } = await connection.client.request({ method: "GET", path: "/" });
  const text = await body.text();
  connection.requestsOfSocket += 1;
  return text;
}

test("a connection without a socket is not kept: the next request has a fresh one", async () => {
  const connections = new Connections("http://127.0.0.1:9", 1_000);
  const unused = connections.take();
  connections.giveBack(unused);
  expect(unused.client.destroyed).toBe(true);
  expect(connections.take()).not.toBe(unused);
  await connections.close();
});

test("of those that are kept the last used is taken first, and one that was dropped never", async () => {
  const sockets: (() => void)[] = [];
  const connections = await openPair((request, response) => {
    sockets.push(() => void request.socket.destroy());
    response.end("x");
  });
  const taken = [connections.take(), connections.take(), connections.take()];
  for (const connection of taken) await ask(connection);
  const [first, second, third] = taken;
  if (first === undefined || second === undefined || third === undefined) throw new Error("none");
  for (const connection of taken) connections.giveBack(connection);
  expect(connections.take()).toBe(third);
  connections.drop(third);
  connections.giveBack(third);
  expect(connections.take()).toBe(second);
  // The server ends the other: it is not handed out again.
  const gone = once(first.client, "disconnect");
  sockets[0]?.();
  await gone;
  expect(connections.take()).not.toBe(first);
  expect(first.requestsOfSocket).toBe(0);
  expect(first.client.destroyed).toBe(true);
  await first.client.destroy();
  connections.giveBack(first);
  expect(connections.take()).not.toBe(first);
  await connections.close();
  expect(second.client.destroyed).toBe(true);
  // Its socket has closed as well.
  expect(second.requestsOfSocket).toBe(0);
});

test("a connection in use that closes takes nothing from the idle ones", async () => {
  const sockets: (() => void)[] = [];
  const connections = await openPair((request, response) => {
    sockets.push(() => void request.socket.destroy());
    response.end("x");
  });
  const [kept, used] = [connections.take(), connections.take()];
  await ask(kept);
  await ask(used);
  connections.giveBack(kept);
  const gone = once(used.client, "disconnect");
  sockets[1]?.();
  await gone;
  // What becomes of it is for its generation to say.
  expect(used.client.destroyed).toBe(false);
  expect(connections.take()).toBe(kept);
});

test("what is closed is not handed out, and what was dropped is not ended a second time", async () => {
  const connections = await openPair();
  const [kept, dropped] = [connections.take(), connections.take()];
  await ask(kept);
  connections.giveBack(kept);
  connections.drop(dropped);
  const destroyed = vi.spyOn(dropped.client, "destroy");
  const closing = connections.close();
  expect(connections.take()).not.toBe(kept);
  await closing;
  expect(kept.client.destroyed).toBe(true);
  expect(destroyed).not.toHaveBeenCalled();
});

test("an answer may take hours to begin, and as long between its pieces", async () => {
  const pass = (): void => {
    undiciTimers.tick(0);
    undiciTimers.tick(3 * 3_600_000);
  };
  const served = Promise.withResolvers<ServerResponse>();
  const connections = await openPair((_request, response) => served.resolve(response));
  const asked = connections.take().client.request({ method: "GET", path: "/" });
  const response = await served.promise;
  pass();
  response.write("a");
  const { body } = await asked;
  pass();
  response.end("b");
  expect(await body.text()).toBe("ab");
});

test("what runs is ended when all are closed", async () => {
  const served = Promise.withResolvers<void>();
  const connections = await openPair(() => served.resolve());
  const failed = connections
    .take()
    .client.request({ method: "GET", path: "/" })
    .then(
      () => null,
      (error: unknown) => error,
    );
  await served.promise;
  await connections.close();
  expect(await failed).toBeInstanceOf(Error);
});

test("a connection that is not made in its time is given up, and not before", async () => {
  // A TLS handshake that is never answered.
  const silent = createNetServer().listen(0, "127.0.0.1");
  const accepted = once(silent, "connection");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const connections = new Connections(`https://127.0.0.1:${String(port)}`, 60_000);
  let code: unknown = null;
  const { client } = connections.take();
  const given = client.request({ method: "GET", path: "/" }).catch((error: unknown) => {
    code = (error as { readonly code: unknown }).code;
  });
  const [socket] = (await accepted) as [Socket];
  undiciTimers.tick(0);
  undiciTimers.tick(50_000);
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  expect(code).toBeNull();
  undiciTimers.tick(20_000);
  await given;
  expect(code).toBe("UND_ERR_CONNECT_TIMEOUT");
  socket.destroy();
  silent.close();
  await connections.close();
});

describe("an idle connection", () => {
  test.each([
    ["is closed before engines close it, which do so after 5 s", 0, 4_000],
    ["is closed after a minute, whatever the engine says", 3_600_000, 60_000],
  ])("%s", async (_what, keepAliveMs, closedMs) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const connections = await openPair(undefined, keepAliveMs);
    const connection = connections.take();
    const use = async (): Promise<void> => {
      expect(await ask(connection)).toBe("x");
      connections.giveBack(connection);
      // Undici sets its timer in a task of its own.
      while (vi.getTimerCount() === 0) await new Promise(setImmediate);
    };
    await use();
    vi.advanceTimersByTime(closedMs - 1);
    expect(connections.take()).toBe(connection);
    await use();
    const gone = once(connection.client, "disconnect");
    vi.advanceTimersByTime(closedMs);
    await gone;
    expect(connections.take()).not.toBe(connection);
  });
});
