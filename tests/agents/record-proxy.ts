import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request as startRequest,
  type ServerResponse,
} from "node:http";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { CapturedRequest } from "../recordings/recording.ts";

/** Stands between a client and the service, and keeps what the client wrote. */
export interface RecordingProxy extends AsyncDisposable {
  readonly url: string;
  /** In the order of arrival. */
  readonly captured: readonly CapturedRequest[];
}

/** Starts one on a free loopback port; it changes nothing on the way but the host's name. */
export async function startRecordingProxy(target: string): Promise<RecordingProxy> {
  const captured: CapturedRequest[] = [];

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const { method = "GET", url: path = "/" } = request;
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    captured.push({ method, path, headers, body: body.toString("utf8") });
    const address = new URL(target);
    const passed = startRequest({
      host: address.hostname,
      port: address.port,
      method,
      path,
      headers: { ...request.headers, host: address.host },
    });
    response.on("close", () => passed.destroy());
    passed.end(body);
    const [answer] = (await once(passed, "response")) as [IncomingMessage];
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    await pipeline(answer, response);
  }

  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no address");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    captured,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
