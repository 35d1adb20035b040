import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Connections } from "../../../src/deployment/openai-compatible/connections.ts";

test("a connection without a socket is not kept: the next request has a fresh one", async () => {
  const connections = new Connections("http://127.0.0.1:9", 1_000);
  const unused = connections.take();
  connections.giveBack(unused);
  expect(unused.client.destroyed).toBe(true);
  expect(connections.take()).not.toBe(unused);
  await connections.close();
});

test("of those that are kept the last used is taken first, and one that was dropped never", async () => {
  const server = createServer((_request, response) => response.end("x")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const connections = new Connections(`http://127.0.0.1:${String(port)}`, 1_000);
  const taken = [connections.take(), connections.take(), connections.take()];
  for (const connection of taken) {
    const { body } = await connection.client.request({ method: "GET", path: "/" });
    await body.dump();
    connection.requestsOfSocket = 1;
  }
  const [first, second, third] = taken;
  if (first === undefined || second === undefined || third === undefined) throw new Error("none");
  for (const connection of taken) connections.giveBack(connection);
  expect(connections.take()).toBe(third);
  connections.drop(third);
  connections.giveBack(third);
  expect(connections.take()).toBe(second);
  // The server ends the other: it is not handed out again.
  const gone = once(first.client, "disconnect");
  server.closeAllConnections();
  await gone;
  expect(connections.take()).not.toBe(first);
  expect(first.requestsOfSocket).toBe(0);
  expect(first.client.destroyed).toBe(true);
  await first.client.destroy();
  connections.giveBack(first);
  expect(connections.take()).not.toBe(first);
  await connections.close();
  expect(second.client.destroyed).toBe(true);
  server.close();
});
