import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openOperatorPages } from "../../src/pages/caller-relay.ts";

// What the operators' listener passes on to the listener of callers.

const seen: IncomingMessage[] = [];
const left = Promise.withResolvers<undefined>();
const callers = createServer((incoming, response) => {
  seen.push(incoming);
  if (incoming.url === "/v1/messages") {
    // An answer that goes on until its reader leaves.
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: first\n\n");
    response.once("close", () => left.resolve(undefined));
    return;
  }
  response.writeHead(402, { "content-type": "text/plain", "x-request-id": "req_1" });
  incoming.pipe(response);
});
const operators = createServer();
let url = "";

function portOf(server: typeof callers): number {
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  for (const server of [callers, operators])
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const page = {
    has: (path: string) => path === "/",
    isBuilt: () => Promise.resolve(true),
    answer: (_request: IncomingMessage, response: { end(text: string): unknown }) =>
      Promise.resolve(void response.end("page")),
  };
  const answer = openOperatorPages(page, { host: "0.0.0.0", port: portOf(callers), url: "http:" });
  operators.on("request", (incoming, response) => {
    void answer(incoming, response).then((known) => known || response.end("nothing"));
  });
  url = `http://127.0.0.1:${String(portOf(operators))}`;
});
afterAll(() => {
  for (const server of [callers, operators]) {
    server.closeAllConnections();
    server.close();
  }
});

test("a generation is asked of the callers' listener, without what says who looks", async () => {
  // Not by fetch, whose answers are held against what callers get; here none of the service is behind it.
  const asked = request(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer trib_x", cookie: "tributary_session=s", origin: url },
  });
  asked.end('{"a":1}');
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  expect([answer.statusCode, answer.headers["x-request-id"]]).toEqual([402, "req_1"]);
  expect(await text(answer)).toBe('{"a":1}');
  expect(seen.at(-1)?.headers).toMatchObject({ authorization: "Bearer trib_x" });
  expect(seen.at(-1)?.headers).not.toHaveProperty("cookie");
  expect(seen.at(-1)?.headers).not.toHaveProperty("origin");
});

test("a reader who leaves ends the request there too", async () => {
  const stop = new AbortController();
  const answer = await fetch(`${url}/v1/messages`, {
    method: "POST",
    body: "{}",
    signal: stop.signal,
  });
  const first = await answer.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value)).toBe("data: first\n\n");
  stop.abort();
  await left.promise;
});

test.each([
  ["GET", "/", "page"],
  ["GET", "/account", "nothing"],
  ["GET", "/receipts/req_1", "nothing"],
  ["GET", "/v1/chat/completions", "nothing"],
  ["POST", "/v1/models", "nothing"],
])("%s %s is not asked of callers' routes", async (method, path, said) => {
  const before = seen.length;
  expect(await (await fetch(url + path, { method })).text()).toBe(said);
  expect(seen).toHaveLength(before);
});
